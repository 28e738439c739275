//! Flows limited by a known cause in the lab, and other programs' results for the same captures.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// One flow for each cause that shows within a few seconds; `make bench-limits` runs all flows.
const FLOWS: &str = "small-receive-buffer-00,small-send-buffer-00,slow-reader-03,slow-writer-00,random-loss-00,clean-path-00,short-flow-00";

/// The correct class, as named by the matrix in JSON, for the flow `name`.
fn right(name: &str) -> &'static str {
    let classes = [
        ("small-receive", "receiver_window"),
        ("small-send", "sender_window"),
        ("slow-reader", "receiver_application"),
        ("slow-writer", "application"),
        ("random-loss", "congestion"),
        ("clean-path", "bandwidth"),
        ("short-flow", "opportunity"),
    ];
    classes.into_iter().find(|(cause, _)| name.starts_with(cause)).map_or("", |(_, class)| class)
}

#[test]
fn captures_of_known_cause_are_diagnosed_and_other_tools_agree() -> TestResult {
    let dir = tempfile::tempdir()?;
    let at = |name: &str| dir.path().join(name).display().to_string();
    let bench = Path::new(env!("CARGO_BIN_EXE_sweetspot-research"));
    let sweetspot = bench.with_file_name("sweetspot");
    if !sweetspot.is_file() {
        sweetspot_testing::skipped(
            "the program sweetspot is not built (cargo build --bin sweetspot)",
        );
        return Ok(());
    }
    let mut limits = Command::new(bench);
    limits.args([
        "bench",
        "limits",
        "--only",
        FLOWS,
        "--keep",
        &at(""),
        "--results",
        &at("results"),
    ]);
    let output = limits.args(["--out", &at("limits.md")]).output()?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    if words.contains("no permission for namespaces") {
        sweetspot_testing::skipped(words.trim());
        return Ok(());
    }
    assert!(output.status.success(), "{words}");
    let (mut seen, mut judged, mut agreed) = (0, 0, 0);
    let mut captures: Vec<_> =
        dir.path().read_dir()?.filter_map(|e| Some(e.ok()?.path())).collect();
    captures.retain(|path| path.to_string_lossy().ends_with(".sender.pcap"));
    captures.sort();
    for capture in &captures {
        let name = capture.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut diagnose = Command::new(&sweetspot);
        let output = diagnose.args(["diagnose", "--json", "--file"]).arg(capture).output()?;
        let json: Value = serde_json::from_slice(&output.stdout)?;
        let flow = &json["flows"][0];
        seen += 1;
        // If the machine was delayed, the flow may differ from the plan.
        let run = name.trim_end_matches(".sender.pcap");
        if words.lines().any(|line| line.starts_with(run) && line.ends_with("(not trusted)")) {
            continue;
        }
        judged += 1;
        agreed += u32::from(flow["verdict"]["class"] == right(&name));
        let trips = trips(capture, "srcport").zip(trips(capture, "dstport"));
        agrees_with_tcptrace(capture, flow, trips.as_ref())?;
        agrees_with_tshark(capture, flow, trips.as_ref())?;
    }
    assert_eq!(seen, 7);
    if judged == 0 {
        sweetspot_testing::skipped("this machine was held up in every run");
    }
    // A machine that is compiling can turn one flow into a different one than planned.
    assert!(agreed + 1 >= judged, "{agreed} of {judged}\n{words}");
    Ok(())
}

/// The first number after `what` in tcptrace's report: the direction of the data.
fn number(report: &str, what: &str) -> Option<f64> {
    let line = report.lines().find_map(|line| line.trim().strip_prefix(what)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The lines that tshark prints for `field` of the packets matching `filter`; `None` if tshark is not
/// installed.
fn tshark(capture: &Path, filter: &str, field: &str) -> Option<Vec<String>> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-Y", filter, "-T", "fields", "-e", field, "-r"]).arg(capture);
    let output = tshark.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// ACK times according to tshark, sorted: of ACKs from the receiver's port or to it.
fn trips(capture: &Path, port: &str) -> Option<Vec<f64>> {
    let filter = format!("tcp.analysis.ack_rtt && tcp.{port} == 4000");
    let lines = tshark(capture, &filter, "tcp.analysis.ack_rtt")?;
    let mut trips: Vec<f64> = lines.iter().filter_map(|line| line.parse().ok()).collect();
    trips.sort_by(f64::total_cmp);
    Some(trips)
}

/// ACK times of the receiver and of the sender.
type AckTimes = (Vec<f64>, Vec<f64>);

fn agrees_with_tcptrace(capture: &Path, flow: &Value, trips: Option<&AckTimes>) -> TestResult {
    let Ok(output) = Command::new("tcptrace").args(["-lrn"]).arg(capture).output() else {
        sweetspot_testing::skipped(
            "the comparison with tcptrace: it is not installed (apt-get install tcptrace)",
        );
        return Ok(());
    };
    let report = String::from_utf8_lossy(&output.stdout);
    let expect = |what| number(&report, what).ok_or(format!("no {what} in {report}"));
    assert_eq!(flow["retransmitted_segments"].as_f64(), Some(expect("rexmt data pkts")?));
    assert_eq!(flow["bytes"].as_f64(), Some(expect("unique bytes sent")?));
    // tcptrace prints tenths of a millisecond. It ignores the handshake and the sender's own response time,
    // which can be long on a busy host and which a short flow shows once.
    let (ours, theirs) = (flow["rtt_min_s"].as_f64().unwrap_or(0.0) * 1e3, expect("RTT min")?);
    let Some((down, up)) = trips else {
        sweetspot_testing::skipped(
            "the round trips of tcptrace: there is no tshark to say what they leave out",
        );
        return Ok(());
    };
    assert!(!down.is_empty(), "no acknowledgement");
    let min = |trips: &[f64]| trips.first().map_or(0.0, |trip| trip * 1e3);
    let range = theirs.min(min(down)) - 0.4..theirs + min(up) + 0.4;
    assert!(range.contains(&ours), "{ours} {range:?}");
    Ok(())
}

fn agrees_with_tshark(capture: &Path, flow: &Value, trips: Option<&AckTimes>) -> TestResult {
    let again = "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || \
                 tcp.analysis.spurious_retransmission || tcp.analysis.out_of_order";
    let Some((frames, (down, up))) = tshark(capture, again, "frame.number").zip(trips) else {
        sweetspot_testing::skipped(
            "the comparison with tshark: it is not installed (apt-get install tshark)",
        );
        return Ok(());
    };
    // At the sender no packet overtakes another: packets that tshark calls out of order were retransmitted,
    // too.
    assert_eq!(flow["retransmitted_segments"].as_u64(), Some(frames.len() as u64));
    let median = |trips: &[f64]| trips.get(trips.len() / 2).copied().unwrap_or(0.0);
    let (down, up) = (median(down), median(up));
    // Our value is accurate to 3 %, and theirs includes segments that Karn's algorithm excludes.
    let range = 0.94 * down..1.06 * (down + up);
    let ours = flow["rtt_median_s"].as_f64().unwrap_or(0.0);
    assert!(range.contains(&ours), "{ours} {range:?}");
    Ok(())
}
