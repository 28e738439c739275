//! Advice that a simulation checks.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use serde_json::Value;

type TestResult = Result<(), Box<dyn std::error::Error>>;

fn sweetspot(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    command.args(line.split(' ')).stdin(Stdio::null());
    command
}

/// The simulation takes hours: 40 Gbit/s for three minutes, 36 times. The closed form is immediate.
#[test]
fn the_closed_form_is_printed_at_once_and_survives_an_interrupt() -> TestResult {
    let question =
        "advise window --rate 40Gbit/s --rtt 40ms --buffer 20MB --cross udp:30% --kernel 6.18";
    let closed = sweetspot(&format!("{question} --verify none")).output()?;
    let mut advise = sweetspot(&format!("{question} --verify sim"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut notes = BufReader::new(advise.stderr.take().ok_or("no standard error")?);
    let mut note = String::new();
    notes.read_line(&mut note)?;
    // (40 - 12) Gbit/s x 40 ms = 140 MB, plus 5 %; 1448 of 1500 B are payload.
    assert!(note.contains("the closed form's best: 141.9 MB, 28 Gbit/s"), "{note}");
    let interrupt = format!("kill -s INT {}", advise.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status()?.success());
    let mut rest = String::new();
    notes.read_to_string(&mut rest)?;
    let output = advise.wait_with_output()?;
    assert_eq!(output.status.code(), Some(130), "{rest}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&closed.stdout));
    assert!(rest.contains("of 36 simulations; this is the closed form"), "{rest}");
    Ok(())
}

/// A scenario without values of its own for one direction cannot tell the two apart.
#[test]
fn a_direction_that_a_scenario_lacks_is_reported() -> TestResult {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("path.toml");
    let path = "[path]\nrate = '100Mbit/s'\nrtt = '40ms'\nbuffer = '500kB'\nforward = 'down'\n";
    std::fs::write(&file, format!("{path}reverse = 'clean'"))?;
    for (direction, is_noted) in [("up", true), ("down", false)] {
        let line = format!("advise window --path {} --direction {direction}", file.display());
        let output = sweetspot(&line).output()?;
        let notes = String::from_utf8(output.stderr)?;
        assert!(output.status.success(), "{notes}");
        assert_eq!(notes.contains("has only the download; this assumes"), is_noted, "{notes}");
    }
    Ok(())
}

/// Advice simulates no run of the scenario, so a missing duration changes nothing.
#[test]
fn a_scenario_needs_no_duration() -> TestResult {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("path.toml");
    let advice = |duration: &str| -> Result<String, Box<dyn std::error::Error>> {
        let path = "[path]\nrate = '100Mbit/s'\nrtt = '40ms'\nbuffer = '500kB'";
        std::fs::write(&file, format!("{duration}{path}"))?;
        let line = format!("advise window --path {} --verify none", file.display());
        let output = sweetspot(&line).output()?;
        assert!(output.status.success(), "{output:?}");
        Ok(String::from_utf8(output.stdout)?)
    };
    assert_eq!(advice("")?, advice("duration = '9s'\n")?);
    Ok(())
}

/// The advice takes cross traffic only from `--cross`, although @elephants has some of its own.
#[test]
fn advice_says_that_it_ignores_the_cross_traffic_of_a_scenario() -> TestResult {
    for (options, is_said) in
        [("", true), (" -q", true), (" --json", true), (" --cross udp:30% --json", false)]
    {
        let line = format!("advise window --path @elephants --verify none{options}");
        let output = sweetspot(&line).output()?;
        let notes = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{notes}");
        assert_eq!(notes.contains("cross traffic is left out"), is_said, "{notes}");
        // 20 windows of 22 packets of 1000 B per 100 ms are 35.2 Mbit/s of 50.
        assert_eq!(notes.contains("add --cross elephants:70%"), is_said, "{notes}");
        if options.contains("--json") {
            let advice: serde_json::Value = serde_json::from_slice(&output.stdout)?;
            let warnings = advice["warnings"].as_array().ok_or("no warnings")?;
            assert_eq!(warnings.len(), usize::from(is_said), "{warnings:?}");
        }
    }
    Ok(())
}

/// 100 Mbit/s x 40 ms is 500 kB. The buffer of a hundred packets of 1000 B adds 100 kB, whatever the MTU. 52 B of headers per
/// packet are subtracted.
#[test]
fn a_buffer_in_packets_uses_the_packet_size_of_the_scenario() -> TestResult {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("packets.toml");
    let path = "rate = \"100Mbit/s\"\nrtt = \"40ms\"\nbuffer = \"100pkt\"\npacket = \"1000B\"\n";
    let transfer = "[[transfer]]\ncongestion = \"cubic\"\n";
    std::fs::write(&file, format!("title = \"x\"\nduration = \"10s\"\n[path]\n{path}{transfer}"))?;
    for (mtu, high) in [("1000B", 568_800), ("9000B", 596_533)] {
        let question = ["advise", "window", "--verify", "none", "--json", "--mtu", mtu, "--path"];
        let mut run = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
        let output = run.args(question).arg(&file).output()?;
        let advice: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        assert_eq!(advice["sweet_spot_high_bytes"], high, "{advice}");
    }
    Ok(())
}

/// 1 Gbit/s x 20 ms are 2.5 MB: 5 % more, 1448 of 1500 B payload.
#[test]
fn options_supply_missing_path_parameters() -> TestResult {
    for (path, options) in [
        ("rate=1Gbit/s rtt=20ms", ["--buffer", "1bdp"].as_slice()),
        ("buffer=2.5MB", &["--rate", "1Gbit/s", "--rtt", "20ms"]),
        ("rtt=20ms buffer=1bdp", &["--rate", "1Gbit/s"]),
    ] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
        let output =
            run.args(["advise", "window", "--json", "--path", path]).args(options).output()?;
        let advice: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        assert_eq!(advice["recommended_bytes"], 2_534_000, "{path}");
    }
    let output = sweetspot("advise window --path rate=1Gbit/s --buffer 1bdp").output()?;
    let notes = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    assert!(output.status.code() == Some(2) && notes.contains("--path: rtt is missing"), "{notes}");
    Ok(())
}

/// A path by emulate's name, and one that is faster to the user than from there. The windows are rate x RTT and 5 % more, or two packets
/// if that is more: 40.5 kB of 10 Mbit/s x 30 ms, 39,096 B of them payload.
#[test]
fn advice_takes_a_path_by_name_or_parameters_for_either_direction() -> TestResult {
    let both = "up.rate=10Mbit/s down.rate=100Mbit/s rtt=30ms buffer=256kB";
    let lte = 12_000_000 / 8 * 70 / 1000 * 21 / 20 * 1448 / 1500;
    let cases: [(&str, &[&str], bool, u64); 5] = [
        ("@lte", &[], false, lte),
        ("@lte", &["--direction", "down"], false, lte),
        (both, &[], true, 39_096),
        (both, &["--direction", "up"], false, 39_096),
        (both, &["--direction", "down"], false, 380_100),
    ];
    for (path, direction, is_named, window) in cases {
        let mut run = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
        let question = ["advise", "window", "--verify", "none", "--json", "--path", path];
        let output = run.args(question).args(direction).output()?;
        let notes = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{notes}");
        let words = "the upload, from near to far (10 Mbit/s); for the download (100 Mbit/s), add";
        assert_eq!(notes.contains(words), is_named, "{notes}");
        let advice: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        assert_eq!(advice["recommended_bytes"], window, "{path} {direction:?}");
    }
    Ok(())
}

/// `measure` writes a download as forward = "down".
#[test]
fn a_scenario_of_a_download_is_advised_as_a_download() -> TestResult {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("path.toml");
    std::fs::write(
        &path,
        "duration = '1s'\n[path]\nrate = '50Mbit/s'\nrtt = '40ms'\nbuffer = '500kB'\nforward = 'down'\n\
         [path.backward]\nrate = '20Mbit/s'\nbuffer = '500kB'\n[[transfer]]\n",
    )?;
    let advised = |direction: &[&str]| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
        run.args(["advise", "window", "--verify", "none", "--json", "--path"]).arg(&path);
        let output = run.args(direction).output()?;
        let notes = String::from_utf8_lossy(&output.stderr).into_owned();
        let advice: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        std::io::Result::Ok((advice["recommended_bytes"].clone(), notes))
    };
    let (window, notes) = advised(&[])?;
    let words = "the download, from far to near (50 Mbit/s); for the upload (20 Mbit/s), add";
    assert!(notes.contains(words), "{notes}");
    assert_eq!(advised(&["--direction", "down"])?.0, window);
    assert_ne!(advised(&["--direction", "up"])?.0, window);
    Ok(())
}

/// Packets wait behind one that jitter delays by 30 ms in each direction: 100 Mbit/s x (40 + 2 x 30) ms is 1.25 MB, 1.2067 MB
/// without headers. The margin is 5 %, or at most half of the buffer's 125 kB: 60,333 B of payload. If packets overtake, the mean
/// jitter counts instead.
#[test]
fn jitter_adds_to_the_rtt_and_ignored_properties_are_named() -> TestResult {
    let base = "rate=100Mbit/s rtt=40ms buffer=125kB";
    let cases = [
        ("", 506_800, vec![]),
        (" jitter=30ms", 1_267_000, vec!["jitter adds 60 ms to the RTT of 40 ms"]),
        (" jitter=30ms jitter_order=free", 886_900, vec!["jitter adds 30 ms to the RTT"]),
        (" queue=codel", 506_800, vec!["its queue discipline counts as drop-tail"]),
        (" reorder=1% reorder_by=5ms", 506_800, vec!["its reordering is left out"]),
    ];
    for (more, window, notes) in cases {
        let mut run = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
        let question = ["advise", "window", "--json", "--path", &format!("{base}{more}")];
        let output = run.args(question).output()?;
        let notes_text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{notes_text}");
        assert!(notes.iter().all(|note| notes_text.contains(note)), "{notes_text}");
        assert_eq!(notes_text.is_empty(), notes.is_empty(), "{notes_text}");
        let advice: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        assert_eq!(advice["recommended_bytes"], window, "{more}");
    }
    Ok(())
}

#[test]
fn a_missing_file_is_reported_without_an_errno() -> TestResult {
    for (question, words) in [
        ("advise window --path missing.toml", "missing.toml: No such file or directory; "),
        ("advise host --peer-sysctl missing", "missing: No such file or directory; "),
        (
            "advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s --fit missing",
            "missing: No such file or directory; ",
        ),
        (
            "advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s --mix missing",
            "there is no such file; ",
        ),
    ] {
        let output = sweetspot(question).output()?;
        let notes = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
        assert!(output.status.code() == Some(2) && notes.contains(words), "{notes}");
    }
    Ok(())
}

/// No name has an empty label (RFC 1035), so that nothing is asked for it.
#[cfg(target_os = "linux")]
#[test]
fn an_unresolvable_peer_name_is_not_a_usage_error() -> TestResult {
    let output = sweetspot("advise host --peer a..b").output()?;
    let notes = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    assert_eq!(output.status.code(), Some(1), "{notes}");
    assert!(notes.contains("no address found for a..b") && notes.contains("check the name"));
    Ok(())
}

#[test]
fn a_policed_path_is_rejected_and_stdin_may_hold_the_scenario() -> TestResult {
    let path = "rate=100Mbit/s rtt=40ms buffer=250kB policer=50Mbit/s policer_burst=100kB";
    let mut run = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    let output = run.args(["advise", "window", "--path", path]).output()?;
    let notes = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    assert_eq!(output.status.code(), Some(2), "{notes}");
    assert!(notes.contains("policer drops packets"), "{notes}");
    assert!(notes.contains("sweetspot sweep"), "{notes}");
    let scenario = tempfile::NamedTempFile::new()?;
    let text = "title = \"x\"\nduration = \"10s\"\n[path]\nrate = \"100Mbit/s\"\nrtt = \"40ms\"\n\
                buffer = \"250kB\"\n[[transfer]]\ncongestion = \"cubic\"\n";
    std::fs::write(scenario.path(), text)?;
    let mut run = sweetspot("advise window --json --path -");
    let output = run.stdin(std::fs::File::open(scenario.path())?).output()?;
    let advice: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    // 500 kB plus 5 %, 1448 of each 1500 B, whatever the scenario's packet size.
    assert!(advice["recommended_bytes"].as_u64() > Some(450_000), "{advice}");
    Ok(())
}

/// 20 Gbit/s is 1.67 million packets of 1500 B per second, 66,667 per RTT. After a loss, CUBIC takes cbrt(0.75 x 66,667) = 36.84
/// s to grow back. 36 runs of 120 s (the maximum), each after two such times, have 11.62 billion packets. No machine simulates
/// them by default, however many cores it has.
#[test]
fn a_simulation_that_is_too_large_falls_back_to_the_closed_form() -> TestResult {
    let question = "advise window --rate 20Gbit/s --rtt 40ms --buffer 20MB --cross udp:30% --json";
    let closed = sweetspot(&format!("{question} --verify none")).output()?;
    let closed: serde_json::Value = serde_json::from_slice(&closed.stdout)?;
    for workers in [1, 64] {
        let output = sweetspot(&format!("{question} --workers {workers}")).output()?;
        let mut advice: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let warnings = advice["warnings"].take();
        let warning = warnings[0].as_str().ok_or("no warning")?;
        assert!(warning.contains("a simulation would take 11621 million packets"), "{warning}");
        let notes = String::from_utf8_lossy(&output.stderr);
        assert!(notes.contains(warning), "{notes}");
        advice["warnings"] = serde_json::json!([]);
        assert_eq!(advice, closed);
    }
    Ok(())
}

/// Twelve losses, of one packet in ten million each, take 120 million packets a run: too many for a default simulation.
#[test]
fn the_warning_about_an_unsimulated_loss_contradicts_no_line() -> TestResult {
    let question = "advise window --rate 100Gbit/s --rtt 100ms --buffer 10MB --loss 1e-7";
    let output = sweetspot(question).output()?;
    let [notes, text] =
        [output.stderr, output.stdout].map(|all| String::from_utf8_lossy(&all).into_owned());
    assert!(notes.contains("the rate may be too high, as bursts after recoveries may"), "{notes}");
    assert!(text.contains("a larger one gains about 1 %") && !notes.contains("safer"), "{text}");
    Ok(())
}

/// Sixty runs share one progress display, with a line every ten seconds.
#[test]
fn router_simulations_share_one_progress_display_and_too_few_flows_are_named() -> TestResult {
    let router =
        "advise router --rate 1Mbit/s --rtt 200ms --input-rate 10Mbit/s --verify sim --explain";
    let advise = |flows: &str| -> Result<(String, String), Box<dyn std::error::Error>> {
        let output = sweetspot(&format!("{router} --flows {flows} --size-mean 80kB")).output()?;
        let [notes, text] = [output.stderr, output.stdout].map(String::from_utf8);
        Ok((notes?, text?))
    };
    let (notes, text) = advise("10")?;
    assert!(text.contains("By simulation: 1 Mbit/s"), "{text}");
    assert!(!notes.contains("simulated 1 of"), "{notes}");
    // The result includes the reason to doubt it.
    let (_, text) = advise("5")?;
    let text = text.replace("\n  ", " ");
    assert!(text.contains("5 flows are too few for an average; it takes 8 or more"), "{text}");
    Ok(())
}

/// Five losses make a transfer long (Prasad et al., section IV); 4.5 round to five. A transfer of 1 MB, 667 packets, has them from a
/// loss of 0.67 % on, and 92 % of the bytes. The closed form predicts 1 / 250, the simulator more.
#[test]
fn the_simulated_loss_decides_which_transfers_of_a_file_are_long() -> TestResult {
    let favoured = |verify: &str| -> Result<(Value, f64), Box<dyn std::error::Error>> {
        let router =
            "advise router --rate 50Mbit/s --rtt 60ms --input-rate 500Mbit/s --mix - --json";
        let mut advise = sweetspot(&format!("{router}{verify}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut sizes = advise.stdin.take().ok_or("no standard input")?;
        sizes.write_all(b"80kB\n1MB\n5kB\n")?;
        drop(sizes);
        let answer: Value = serde_json::from_slice(&advise.wait_with_output()?.stdout)?;
        let rule = &answer["rules"]["BDP"]["loss"];
        Ok((answer["maximised"].clone(), rule.as_f64().unwrap_or(1.0 / 250.0)))
    };
    for verify in [" --verify none", ""] {
        let (maximised, loss) = favoured(verify)?;
        let is_long = (1e6 / 1500.0 * loss).round() >= 5.0;
        assert_eq!(maximised, if is_long { "bulk" } else { "short" }, "{verify}: {loss}");
        assert_eq!(is_long, verify.is_empty(), "{loss}");
    }
    Ok(())
}

#[test]
fn a_link_with_few_packets_in_flight_gets_the_initial_window() -> TestResult {
    let router = "advise router --rate 56kbit/s --rtt 60ms --input-rate 10Mbit/s --json";
    let output = sweetspot(router).output()?;
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    // RFC 6928: ten packets.
    assert_eq!((output.status.code(), answer["buffer_packets"].as_f64()), (Some(0), Some(10.0)));
    Ok(())
}

#[test]
fn quiet_router_advice_is_short() {
    let router = "advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s --verify none";
    for flows in [
        "",
        "--flows 20",
        "--flows 20 --mix short",
        "--flows 250",
        "--flows 1000",
        "--flows 100000",
    ] {
        let options = format!("{router} {flows} --available 1MB -q");
        let mut run = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
        let output = run.args(options.split_whitespace()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with("buffer ") && text.lines().count() <= 12, "{text}");
        let few = text.contains("Warning: 20 flows of 80 kB on average use 3.6 % of the link,");
        assert_eq!(few, flows.contains("--mix short"), "{text}");
    }
}

#[test]
fn conflicting_options_are_rejected_and_a_failed_fit_names_its_remedy() -> TestResult {
    let directory = tempfile::tempdir()?;
    let [sizes, few] = ["sizes", "few"].map(|name| directory.path().join(name));
    std::fs::write(&sizes, "80kB\n")?;
    std::fs::write(&few, "hello\n25,2%\n100,1%\n")?;
    let router = "advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s";
    for (options, code, words) in [
        ("--flows 100 --load 20%".to_owned(), 2, "leave one of the two out"),
        (format!("--size-mean 1MB --mix {}", sizes.display()), 2, "the file has the sizes"),
        (format!("--fit {}", few.display()), 1, "there are 2; write a line for each buffer"),
    ] {
        let output = sweetspot(&format!("{router} {options}")).output()?;
        let notes = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
        assert_eq!(output.status.code(), Some(code), "{notes}");
        assert!(notes.contains(words), "{notes}");
    }
    // A full link is the default.
    let full = sweetspot(&format!("{router} --flows 100 --load 100% --verify none")).output()?;
    assert!(full.status.success());
    Ok(())
}

/// p = 0.1 / B^0.5: 0.01 with 100 packets. The simulator has other losses.
#[test]
fn measurements_decide_unless_a_simulation_is_requested() -> TestResult {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("measured.csv");
    std::fs::write(&file, "25,2%\n100,1%\n400,0.5%\n1600,0.25%\n")?;
    let question = "advise router --rate 20Mbit/s --rtt 60ms --input-rate 200Mbit/s --fit";
    let advise = sweetspot(question).arg(&file).output()?;
    let text = String::from_utf8(advise.stdout)?;
    let fit = "\nfit     loss = a B^-b, a = 0.1, b = 0.5, R^2 = 1.000, 4 measurements; without\n        delays, so the mean queue is predicted\n";
    assert!(text.contains(fit) && text.contains("source  a loss form fitted"), "{text}");
    assert!(!text.contains("simulation"), "{text}");
    let forced = sweetspot(question).arg(&file).args(["--verify", "sim"]).output()?;
    let text = String::from_utf8(forced.stdout)?;
    assert!(text.contains("the simulation does not use the measurements"), "{text}");
    Ok(())
}

/// A packet or socket buffer without a unit is in bytes. A router's buffer may be in packets, so it needs a unit.
#[test]
fn a_bare_mtu_is_in_bytes_and_a_bare_buffer_is_rejected() -> TestResult {
    let path = "advise window --rate 1Gbit/s --rtt 20ms --kernel 6.18 --json";
    let [bare, unit] = ["9000", "9000B"]
        .map(|mtu| sweetspot(&format!("{path} --mtu {mtu}")).output().map(|output| output.stdout));
    let (bare, unit) = (bare?, unit?);
    assert!(!bare.is_empty() && bare == unit, "{}", String::from_utf8_lossy(&bare));
    let [bare, unit] = ["0", "0B"].map(|buffer| {
        sweetspot(&format!("{path} --buffer {buffer}")).output().map(|output| output.stdout)
    });
    let (bare, unit) = (bare?, unit?);
    assert!(!bare.is_empty() && bare == unit, "{}", String::from_utf8_lossy(&bare));
    for wrong in ["--buffer 9000", "--mtu 9000cats"] {
        let output = sweetspot(&format!("{path} {wrong}")).output()?;
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
    Ok(())
}

#[test]
fn an_option_without_effect_is_named_and_an_impossible_goal_rejected() -> TestResult {
    let plain = "advise window --rate 50Mbit/s --rtt 30ms --buffer 100kB --kernel 6.18 --json";
    let closed = sweetspot(plain).output()?;
    let advise = sweetspot(&format!("{plain} --verify sim")).output()?;
    let notes = String::from_utf8(advise.stderr)?;
    assert!(notes.starts_with("sweetspot: --verify sim has no effect: "), "{notes}");
    let [mut closed, advise] = [closed.stdout, advise.stdout]
        .map(|json| serde_json::from_slice::<serde_json::Value>(&json).unwrap_or_default());
    assert!(advise["recommended_bytes"].is_u64(), "{advise}");
    let warnings = advise["warnings"].as_array().ok_or("no warnings")?;
    assert_eq!(format!("sweetspot: {}\n", warnings[0].as_str().unwrap_or_default()), notes);
    closed["warnings"] = advise["warnings"].clone();
    assert_eq!(closed, advise);

    // 10 flows of 10 GB each, on a link with a BDP of 2.5 MB.
    let lasting = "advise router --rate 100Mbit/s --rtt 200ms --input-rate 1Gbit/s --flows 10 --size-mean 10GB";
    for favour in ["short", "latency"] {
        let refused = sweetspot(&format!("{lasting} --favour {favour}")).output()?;
        let line = String::from_utf8(refused.stderr)?;
        assert_eq!(refused.status.code(), Some(2), "{line}");
        assert!(
            line.starts_with(&format!("sweetspot: --favour {favour} is impossible: ")),
            "{line}"
        );
    }
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn quiet_host_advice_has_only_labelled_lines() -> TestResult {
    let output = sweetspot("advise host --rate 100Gbit/s --rtt 200ms -q").output()?;
    let text = String::from_utf8(output.stdout)?;
    let is_label = |line: &str| line.len() < 10 || line.as_bytes()[9] == b' ';
    assert!(text.contains("\nchecked   ") && text.lines().all(is_label), "{text}");
    assert!(text.contains("\nchanges "), "{text}");
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn sysctls_are_printed_or_written_to_a_conf_file() -> TestResult {
    let output = sweetspot("advise host --write sysctls").output()?;
    let notes_text = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(2), "{notes_text}");
    assert!(notes_text.contains("write sysctls.conf, or - to print them"), "{notes_text}");
    let both = sweetspot("advise host --write - --json").output()?;
    assert_eq!(both.status.code(), Some(2));
    let printed = sweetspot("advise host --rate 100Gbit/s --rtt 200ms --write -").output()?;
    let text = String::from_utf8(printed.stdout)?;
    let is_line = |line: &str| line.starts_with("# ") || line.contains(" = ");
    assert!(printed.status.success() && text.lines().all(is_line), "{text}");
    Ok(())
}

/// The test does not depend on the host's settings.
#[cfg(target_os = "linux")]
#[test]
fn an_existing_file_is_not_overwritten() -> TestResult {
    let directory = tempfile::tempdir()?;
    let (old, new) = (directory.path().join("old.conf"), directory.path().join("new.conf"));
    std::fs::write(&old, "mine")?;
    let advise_host = |file: &std::path::Path| {
        sweetspot("advise host --rate 100Gbit/s --rtt 200ms --write").arg(file).output()
    };
    let (first, second) = (advise_host(&old)?, advise_host(&new)?);
    assert_eq!(std::fs::read(&old)?, b"mine");
    let [notes_text, notes] = [first.stderr, second.stderr].map(String::from_utf8);
    let (notes_text, notes) = (notes_text?, notes?);
    let is_written = new.exists();
    assert_eq!(notes.contains("was not written"), !is_written, "{notes}");
    assert_eq!(notes_text.contains("exists and was left unchanged"), is_written, "{notes_text}");
    assert_eq!(first.status.success(), !is_written, "{notes_text}");
    Ok(())
}
