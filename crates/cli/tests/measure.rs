//! Tests `sweetspot measure` and `measure --quick` between two hosts across an emulated path, and simulates the scenarios that
//! they write.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use sweetspot_linux::clock;
use sweetspot_protocol::Ticket;
use sweetspot_scenario::Scenario;
use sweetspot_units::Duration;

type TestResult = Result<(), Box<dyn std::error::Error>>;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

/// Runs `command` at the near end of a path of 20 Mbit/s, 20 ms and 100 kB, with a server at the far end; `None` without
/// permission for namespaces.
fn across(dir: &Path, command: &str) -> std::io::Result<Option<Output>> {
    across_path(dir, "rate=20Mbit/s rtt=20ms buffer=100kB", command)
}

/// The same across a different path.
fn across_path(dir: &Path, path: &str, command: &str) -> std::io::Result<Option<Output>> {
    let at = dir.display();
    let far = format!("{PROGRAM} serve --dir {at} --listen 10.77.0.2:7000 > {at}/ticket");
    let near = format!(
        "while ! [ -s {at}/ticket ]; do sleep 0.1; done; {PROGRAM} {command} --ticket-file {at}/ticket"
    );
    let output = Command::new(PROGRAM)
        .args(["emulate", "--quiet", "--path", path, "--far", &far])
        .args(["--", "sh", "-c", &near])
        .output()?;
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    if printed.contains("no permission for namespaces") {
        sweetspot_testing::skipped(printed.trim());
        return Ok(None);
    }
    Ok(Some(output))
}

/// Asserts that every finding in `value` has an interval around it, or a reason, and returns their number.
fn findings_are_whole(value: &Value) -> usize {
    match value {
        Value::Object(map) if map.contains_key("how") => {
            let [low, middle, high] = ["low", "value", "high"].map(|key| map[key].as_f64());
            let is_point = map["low"].is_null() && map["high"].is_null();
            assert!(middle.is_some(), "{value}");
            assert!(is_point || low < high && low <= middle && middle <= high, "{value}");
            assert!(map["how"].as_str().is_some_and(|how| !how.is_empty()), "{value}");
            1
        }
        Value::Object(map)
            if map.contains_key("unknown")
                && map.keys().all(|key| ["unknown", "low", "high"].contains(&key.as_str())) =>
        {
            assert!(map["unknown"].as_str().is_some_and(|why| !why.is_empty()), "{value}");
            1
        }
        Value::Object(map) => map.values().map(findings_are_whole).sum(),
        Value::Array(list) => list.iter().map(findings_are_whole).sum(),
        _ => 0,
    }
}

#[test]
fn a_measured_path_becomes_a_scenario_that_runs() -> TestResult {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("path.toml");
    let command = format!(
        "measure --json --direction down --gentle --budget 20MB --scenario {} --html {}",
        file.display(),
        dir.path().join("path.html").display()
    );
    let Some(output) = across(dir.path(), &command)? else { return Ok(()) };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let measured: Value = serde_json::from_slice(&output.stdout)?;
    assert!(findings_are_whole(&measured) >= 10, "{measured}");
    let down = &measured["directions"][0];
    assert_eq!(down["direction"], "down");
    assert!(down["buffer_bytes"]["unknown"].is_string(), "a gentle measurement fills no buffer");
    assert!(measured["intrusion"]["bytes"].as_u64().is_some_and(|bytes| bytes <= 20_000_000));
    // The value is extrapolated from the earliest echo, so it may lie on either side. The upper bound is that echo, without its
    // own time.
    let base = &measured["round_trip"]["base_s"];
    let high = base["high"].as_f64().ok_or("no base RTT")?;
    assert!(high >= 0.02, "nothing is faster than the path's propagation: {base}");

    let page = fs::read_to_string(dir.path().join("path.html"))?;
    assert!(page.contains("available bandwidth") && page.contains("<svg"), "no pictures");
    assert!(!page.contains("src=\"http") && !page.contains("<link"), "it loads from elsewhere");
    let text = fs::read_to_string(&file)?;
    assert!(text.contains("# measured: ") && text.contains("# assumed "), "{text}");
    let run = Command::new(PROGRAM)
        .args(["run", &file.to_string_lossy(), "--json", "--set", "duration=2s"])
        .output()?;
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let again = Command::new(PROGRAM)
        .args(["emulate", "--quiet", "--path", &file.to_string_lossy(), "--", "true"])
        .output()?;
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    Ok(())
}

#[test]
fn fq_codel_is_recognised_as_per_flow_queueing() -> TestResult {
    let dir = tempfile::tempdir()?;
    let path = "rate=20Mbit/s rtt=20ms buffer=100kB queue=fq-codel";
    let Some(output) = across_path(dir.path(), path, "measure --json --direction down")? else {
        return Ok(());
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let measured: Value = serde_json::from_slice(&output.stdout)?;
    let down = &measured["directions"][0];
    assert_eq!(down["discipline"]["value"], "per-flow", "{measured}");
    let low = down["buffer_bytes"]["low"].as_f64().ok_or("no bound of the buffer")?;
    assert!(down["buffer_bytes"]["unknown"].is_string(), "{measured}");
    // The longest observed queue fitted into the buffer; one byte is a rounding.
    let longest = measured["intrusion"]["longest_queue_s"].as_f64().ok_or("no queue")?;
    let capacity = down["capacity_bps"]["value"].as_f64().ok_or("no capacity")?;
    assert!(low + 1.0 >= longest * capacity / 8.0, "{measured}");
    let help = Command::new(PROGRAM).args(["measure", "--help"]).output()?;
    let help = String::from_utf8(help.stdout)?;
    let (_, members) = help.split_once("Members of --json:").ok_or("no members")?;
    let words: Vec<&str> =
        members.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    let names = sweetspot_testing::member_names(&measured);
    assert!(names.len() > 60, "{names:?}");
    for name in names {
        assert!(words.contains(&name.as_str()), "measure --help lacks {name}");
    }
    Ok(())
}

#[test]
fn watch_prints_a_line_per_measurement_and_writes_a_changing_scenario() -> TestResult {
    let dir = tempfile::tempdir()?;
    let (series, file) = (dir.path().join("day.jsonl"), dir.path().join("day.toml"));
    let command = format!(
        "measure --direction down --budget 3MB --watch 1s --times 2 --series {} --scenario {}",
        series.display(),
        file.display()
    );
    let Some(output) = across(dir.path(), &command)? else { return Ok(()) };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = fs::read_to_string(&series)?;
    let samples: Vec<Value> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    assert_eq!(samples.len(), 2);
    let printed = String::from_utf8(output.stderr)?;
    for (n, sample) in samples.iter().enumerate() {
        let time = sample["time"].as_str().ok_or("no time")?;
        assert!(findings_are_whole(sample) >= 5, "{sample}");
        assert!(printed.contains(&format!("{}, {time}: down: ", n + 1)), "{printed}");
    }
    // Two measurements name the scenario once.
    assert!(
        printed.contains("measuring back to back, as one takes up to")
            && printed.contains("day.jsonl"),
        "{printed}"
    );
    assert_eq!(printed.matches("each measurement updates it").count(), 1, "{printed}");
    let text = fs::read_to_string(&file)?;
    // The comment with each measurement's time agrees with its result.
    let path = Scenario::parse(&text)?.path;
    let (first, second) = (Duration::ZERO, path.changes.last().ok_or("no change")?.at);
    for (sample, at) in samples.iter().zip([first, second]) {
        let until = at + Duration::from_millis(1);
        let value = |of: &Value| of["value"].as_f64();
        let base = value(&sample["round_trip"]["base_s"]).ok_or("no base RTT")?;
        // Delays are rounded to whole microseconds in each direction.
        assert!((path.mean_rtt(at, until) - base).abs() < 3e-6, "{text}\n{sample}");
        let down = &sample["directions"][0];
        let left = value(&down["available_bps"]).or(value(&down["capacity_bps"]));
        assert_eq!(Some(path.mean_rate(at, until).as_f64()), left, "{text}\n{sample}");
    }
    let run = Command::new(PROGRAM)
        .args(["run", &file.to_string_lossy(), "--json", "--set", "duration=20s"])
        .output()?;
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    Ok(())
}

/// The echoes take 4 kB. A train of six packets takes 9 kB, so the capacity stays unknown.
#[test]
fn watch_reports_that_a_scenario_needs_the_unknown_capacity() -> TestResult {
    let dir = tempfile::tempdir()?;
    let (series, file) = (dir.path().join("day.jsonl"), dir.path().join("day.toml"));
    let command = format!(
        "measure --direction up --budget 5kB --watch 1s --times 1 --series {} --scenario {}",
        series.display(),
        file.display()
    );
    let Some(output) = across(dir.path(), &command)? else { return Ok(()) };
    let printed = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("day.toml: it needs the capacity, which is unknown"), "{printed}");
    assert!(!file.exists() && series.exists());
    Ok(())
}

/// 60 echoes of 100 B, there and back, take 12 kB; the 20 of --quick take 4 kB.
#[test]
fn a_budget_too_small_for_the_rtt_is_rejected() -> TestResult {
    for (option, budget, min) in [("--gentle", "1kB", "12 kB"), ("--quick", "3.9kB", "4 kB")] {
        let command = ["measure", "sweetspot1:x", "--budget", budget, option];
        let refused = Command::new(PROGRAM).args(command).output()?;
        let printed = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{printed}");
        assert!(printed.contains(&format!("the RTT alone needs {min}")), "{printed}");
    }
    Ok(())
}

#[test]
fn a_budget_for_the_rtt_only_is_reported_and_respected() -> TestResult {
    let dir = tempfile::tempdir()?;
    let Some(output) = across(dir.path(), "measure --direction up --budget 12kB")? else {
        return Ok(());
    };
    let words = String::from_utf8(output.stdout)?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(words.contains("would exceed the budget of 12 kB"), "{words}");
    assert!(words.contains("Both ends sent 12 kB in total; "), "{words}");
    // Each quantity has one reason: its measurement was skipped.
    let unknown =
        words.split("Unknown or only bounded, with the reason:").nth(1).unwrap_or_default();
    for quantity in ["random loss", "buffer", "jitter", "delay under load"] {
        assert_eq!(unknown.matches(quantity).count(), 1, "{quantity}: {words}");
    }
    let flat = unknown.split_whitespace().collect::<Vec<_>>().join(" ");
    let (flat, _) = flat.split_once("The throughput of TCP").ok_or("no outlook")?;
    let reasons = flat.matches(" (up): ").count();
    assert!(reasons > 0, "{words}");
    assert_eq!(
        flat.matches(" more would exceed the budget of 12 kB").count(),
        // The second measurement of the base RTT belongs to no direction.
        reasons + 1,
        "{words}"
    );
    assert!(words.lines().all(|line| line.chars().count() <= 80), "{words}");
    Ok(())
}

/// The budget leaves no bytes for the capacity that a scenario needs. The results and the page do not need it.
#[test]
fn a_scenario_that_cannot_be_written_leaves_the_results_and_the_page() -> TestResult {
    for (options, result) in [("", "Both ends sent"), ("--quick --json", "up, left out: ")] {
        let dir = tempfile::tempdir()?;
        let (file, page) = (dir.path().join("path.toml"), dir.path().join("path.html"));
        let files = format!("--scenario {} --html {}", file.display(), page.display());
        let command = format!("measure --direction up --budget 12kB {options} {files}");
        let Some(output) = across(dir.path(), &command)? else { return Ok(()) };
        let printed = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(1), "{printed}");
        assert!(String::from_utf8(output.stdout)?.contains(result), "{printed}");
        assert!(page.exists() && !file.exists(), "{printed}");
        let words = format!("wrote no {}: it needs the capacity", file.display());
        assert!(printed.contains(&words), "{printed}");
    }
    Ok(())
}

#[test]
fn measure_without_a_ticket_says_how_to_get_one() -> TestResult {
    let output = Command::new(PROGRAM).arg("measure").env_remove("SWEETSPOT_TICKET").output()?;
    assert_eq!(output.status.code(), Some(2));
    let printed = String::from_utf8(output.stderr)?;
    assert!(
        printed.contains("sweetspot serve --dir DIR") && printed.contains("HOST:PORT"),
        "{printed}"
    );
    Ok(())
}

#[test]
fn without_a_ticket_only_the_rtt_to_a_server_is_measured() -> TestResult {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let server = listener.local_addr()?.to_string();
    let output = Command::new(PROGRAM).args(["measure", &server, "--json"]).output()?;
    let measured: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(measured["peer"], server.as_str());
    assert_eq!(findings_are_whole(&measured["round_trip"]), 3);
    assert_eq!(measured["directions"], Value::Array(Vec::new()));
    let why = measured["outlook"]["unknown"].as_str().ok_or("no reason")?;
    assert!(why.contains("ticket that `sweetspot serve` prints"), "{why}");
    // Sweetspot may nevertheless run there.
    assert!(!why.contains("does not run"), "{why}");
    Ok(())
}

#[test]
fn a_far_end_that_dies_ends_the_measurement_with_an_error() -> TestResult {
    let dir = tempfile::tempdir()?;
    let mut serve = Command::new(PROGRAM)
        .args(["serve", "--listen", "127.0.0.1:0", "--dir"])
        .arg(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut ticket = String::new();
    BufReader::new(serve.stdout.take().ok_or("no standard output")?).read_line(&mut ticket)?;
    let measuring = Command::new(PROGRAM)
        .args(["measure", ticket.trim()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // A thread of this name starts once both ends have met. From then on, the echoes alone take 1.2 s.
    let tasks = format!("/proc/{}/task", measuring.id());
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm"));
    let is_named = |task| name(task).is_ok_and(|name| name.trim() == "datagrams");
    let patience = clock::now() + Duration::from_secs(60);
    while !fs::read_dir(&tasks)?.flatten().any(is_named) {
        assert!(clock::now() < patience, "they never met");
        clock::sleep_until(clock::now() + Duration::from_millis(5));
    }
    serve.kill()?;
    serve.wait()?;
    let output = measuring.wait_with_output()?;
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stderr)?;
    assert!(
        printed.contains("127.0.0.1:") && printed.contains("during the measurement"),
        "{printed}"
    );
    assert_eq!(printed.lines().count(), 1, "{printed}");
    Ok(())
}

/// Each start of `serve` has another certificate, so a ticket for an earlier one is never accepted.
#[test]
fn a_refused_ticket_or_a_missing_identity_ends_the_first_measurement() -> TestResult {
    let dir = tempfile::tempdir()?;
    let serve = |listen: &str| -> std::io::Result<(Child, String)> {
        let mut serve = Command::new(PROGRAM)
            .args(["serve", "--listen", listen, "--dir"])
            .arg(dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut ticket = String::new();
        let output = serve.stdout.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
        BufReader::new(output).read_line(&mut ticket)?;
        Ok((serve, ticket.trim().to_owned()))
    };
    let (mut first, ticket) = serve("127.0.0.1:0")?;
    first.kill()?;
    first.wait()?;
    let port = ticket.parse::<Ticket>()?.port;
    let (mut second, _) = serve(&format!("127.0.0.1:{port}"))?;
    let series = dir.path().join("day.jsonl");
    let watched = Command::new(PROGRAM)
        .args(["measure", &ticket, "--watch", "1h", "--series"])
        .arg(&series)
        .output();
    second.kill()?;
    second.wait()?;
    let watched = watched?;
    let printed = String::from_utf8_lossy(&watched.stderr);
    assert_eq!(watched.status.code(), Some(1), "{printed}");
    assert!(printed.contains("another certificate") && !series.exists(), "{printed}");

    let keyless =
        Command::new(PROGRAM).args(["measure", &ticket, "--identity", "nofile"]).output()?;
    let printed = String::from_utf8_lossy(&keyless.stderr);
    assert_eq!(keyless.status.code(), Some(1), "{printed}");
    assert!(printed.contains("--identity nofile: there is no such file"), "{printed}");
    Ok(())
}

#[test]
fn a_scenario_path_is_emulated_hop_by_hop_in_both_directions() -> TestResult {
    let dir = tempfile::tempdir()?;
    let (file, certificate) = (dir.path().join("chain.toml"), dir.path().join("certificate.json"));
    fs::write(dir.path().join("back.csv"), "0,6Mbit/s\n1,2Mbit/s\n")?;
    // The data crosses 5 Mbit/s, the ACKs 3 Mbit/s; the near end sends the data, or receives it.
    for (forward, reverse, rates) in [("up", "down", [5, 3]), ("down", "up", [3, 5])] {
        let text = format!(
            "duration = \"1s\"\n[path]\nrtt = \"9ms\"\nforward = \"{forward}\"\n\
             [[path.hop]]\nrate = \"9Mbit/s\"\nbuffer = \"90kB\"\nbackward = {{ rate = \"3Mbit/s\" }}\n\
             [[path.hop]]\nrate = \"5Mbit/s\"\nbuffer = \"90kB\"\n\
             [[path.trace]]\nhop = 1\nway = \"backward\"\nfile = \"back.csv\"\n[[transfer]]\n"
        );
        fs::write(&file, text)?;
        let output = Command::new(PROGRAM)
            .args(["emulate", "--quiet", "--path"])
            .arg(&file)
            .arg("--certificate")
            .arg(&certificate)
            .args(["--", "sh", "-c", "ping -c 1 -W 5 $SWEETSPOT_FAR || true"])
            .output()?;
        if String::from_utf8_lossy(&output.stderr).contains("namespace") {
            return Ok(());
        }
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let certified: Value = serde_json::from_slice(&fs::read(&certificate)?)?;
        let path = certified["path"].as_str().ok_or("no path")?;
        assert_eq!(path.matches(" | ").count(), 1, "{path}");
        for rate in ["3Mbit/s", "4Mbit/s"] {
            assert!(path.contains(&format!("{reverse}.rate={rate}")), "{path}");
        }
        let configured = ["up", "down"].map(|direction| certified[direction]["asked_bps"].as_u64());
        assert_eq!(configured, rates.map(|mbit| Some(mbit * 1_000_000)), "{path}");
    }
    Ok(())
}

#[test]
fn a_rate_without_measured_loss_is_an_upper_bound_with_its_assumptions() -> TestResult {
    let dir = tempfile::tempdir()?;
    let full = "measure --direction down --budget 300kB";
    let Some(output) = across(dir.path(), full)? else { return Ok(()) };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let words = String::from_utf8(output.stdout)?;
    let simulated = words.split("Goodput of one TCP download").nth(1).unwrap_or_default();
    assert!(simulated.matches(" at most ").count() >= 4, "{words}");
    assert!(!simulated.contains("Mbit/s ("), "a bound has no interval: {words}");
    let flat = words.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("Not measured, and assumed: no random loss; a drop-tail buffer"),
        "{flat}"
    );
    assert!(words.lines().all(|line| line.chars().count() <= 80), "{words}");

    Ok(())
}

#[test]
fn an_out_of_range_port_is_reported() -> TestResult {
    let output = Command::new(PROGRAM).args(["measure", "127.0.0.1:99999"]).output()?;
    assert_eq!(output.status.code(), Some(2));
    let printed = String::from_utf8(output.stderr)?;
    assert!(printed.contains("port 99999 is out of range"), "{printed}");
    Ok(())
}

/// A server without Sweetspot shows no rate, so there is no verdict and no path for a scenario. Nobody answers at this address
/// (RFC 5737).
#[test]
fn options_that_need_a_ticket_are_rejected_before_the_measurement() -> TestResult {
    for option in [&["--quick"][..], &["--scenario", "path.toml"], &["--budget", "1MB"]] {
        let refused =
            Command::new(PROGRAM).args(["measure", "192.0.2.1:7"]).args(option).output()?;
        let printed = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{printed}");
        assert!(printed.contains(option[0]) && printed.contains("only with a ticket"), "{printed}");
    }
    Ok(())
}

/// Nobody answers at this address (RFC 5737), so only a check before the measurement can name the file.
#[test]
fn an_unwritable_output_file_is_rejected_before_the_measurement() -> TestResult {
    for (far_end, option) in [("192.0.2.1:7", "--html"), ("sweetspot1:x", "--scenario")] {
        let command = ["measure", far_end, option, "/nonexistent/x"];
        let refused = Command::new(PROGRAM).args(command).output()?;
        let printed = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success(), "{option}");
        assert!(
            printed.contains(option) && printed.contains("create the directory first"),
            "{printed}"
        );
    }
    Ok(())
}
