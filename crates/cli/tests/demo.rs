//! The demonstration end to end: real programs, real kernel TCP, an emulated path. If the machine
//! does not allow namespaces, these tests print this and pass.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

type TestResult = Result<(), Box<dyn Error>>;

const PATH: &str = "rate=100Mbit/s rtt=10ms buffer=125kB";

/// A demonstration with all files below `dir`.
fn demo(dir: &Path, path: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    command.args(["demo", "--path", path, "--out"]).arg(dir.join("out")).args(arguments);
    command.env("TMPDIR", dir.join("tmp"));
    command
}

/// Runs it; `None` if namespaces are not allowed.
fn run(dir: &Path, arguments: &[&str]) -> Result<Option<Output>, Box<dyn Error>> {
    fs::create_dir_all(dir.join("tmp"))?;
    let output = demo(dir, PATH, arguments).output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("no permission for namespaces") {
        sweetspot_testing::skipped(stderr.trim());
        return Ok(None);
    }
    Ok(Some(output))
}

fn is_empty(dir: &Path) -> std::io::Result<bool> {
    Ok(fs::read_dir(dir)?.next().is_none())
}

#[test]
fn every_variant_transfers_the_whole_file_and_leaves_no_temporary_files() -> TestResult {
    let dir = tempfile::tempdir()?;
    let chosen = ["--size", "3MB", "--sizing", "kernel,bdp,sobas:paper,sobas", "--json", "-q"];
    let Some(output) = run(dir.path(), &chosen)? else { return Ok(()) };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let outcome: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(
        outcome,
        serde_json::from_slice::<Value>(&fs::read(dir.path().join("out/outcome.json"))?)?
    );
    let variants = outcome["variants"].as_array().ok_or("no variants")?;
    assert_eq!(variants.len(), 4);
    for c in variants {
        assert_eq!(c["hash_ok"], true, "{c}");
        assert_eq!(c["congestion"], "cubic");
        // Goodput never exceeds the path's rate.
        let goodput = c["goodput_bps"].as_f64().ok_or("no goodput")?;
        let capacity = outcome["path"]["payload_capacity_bps"].as_f64().ok_or("no capacity")?;
        assert!(goodput > 0.0 && goodput <= capacity, "{goodput} of {capacity}");
        assert!(!c["series"]["t_s"].as_array().ok_or("no series")?.is_empty());
    }
    assert!(fs::read_to_string(dir.path().join("out/report.html"))?.contains("<svg"));
    assert!(is_empty(&dir.path().join("tmp"))?);
    Ok(())
}

#[test]
fn a_variant_that_cannot_run_is_reported_with_a_remedy() -> TestResult {
    let dir = tempfile::tempdir()?;
    let chosen = ["--size", "200kB", "--sizing", "kernel+nosuch,kernel+cubic"];
    let Some(output) = run(dir.path(), &chosen)? else { return Ok(()) };
    assert_eq!(output.status.code(), Some(1));
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("kernel+nosuch  failed: congestion control nosuch is not"), "{table}");
    let advice = String::from_utf8_lossy(&output.stderr);
    assert!(advice.contains("sudo modprobe tcp_nosuch"), "{advice}");
    // A run without any result keeps an earlier run's page.
    let page = dir.path().join("out/report.html");
    let before = fs::read(&page)?;
    let Some(output) = run(dir.path(), &["--size", "200kB", "--sizing", "kernel+nosuch"])? else {
        return Ok(());
    };
    assert_eq!(output.status.code(), Some(2));
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(why.contains("--sizing: congestion control nosuch is not"), "{why}");
    assert_eq!(why.lines().count(), 1, "{why}");
    assert_eq!(fs::read(&page)?, before);
    Ok(())
}

#[test]
fn a_size_larger_than_the_disk_is_rejected_before_writing() -> TestResult {
    let dir = tempfile::tempdir()?;
    // No file system has room for an exabyte.
    let Some(output) = run(dir.path(), &["--size", "1000000TB"])? else { return Ok(()) };
    assert_eq!(output.status.code(), Some(1));
    let usage_error = String::from_utf8_lossy(&output.stderr);
    assert!(usage_error.contains("set TMPDIR to a directory with enough space"), "{usage_error}");
    assert!(is_empty(&dir.path().join("tmp"))?);
    Ok(())
}

#[test]
fn the_next_demo_removes_the_files_of_a_killed_one() -> TestResult {
    let dir = tempfile::tempdir()?;
    let left = dir.path().join("tmp/sweetspot-demo-killed");
    fs::create_dir_all(&left)?;
    fs::write(left.join("content"), "x")?;
    let Some(output) = run(dir.path(), &["--size", "200kB", "--sizing", "kernel"])? else {
        return Ok(());
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(is_empty(&dir.path().join("tmp"))?);
    Ok(())
}

#[test]
fn nothing_is_measured_if_the_results_cannot_be_saved() -> TestResult {
    let dir = tempfile::tempdir()?;
    fs::write(dir.path().join("out"), "a file where the directory would be")?;
    let Some(output) = run(dir.path(), &[])? else { return Ok(()) };
    assert_eq!(output.status.code(), Some(1));
    let usage_error = String::from_utf8_lossy(&output.stderr);
    assert!(usage_error.contains("is not a directory; name another"), "{usage_error}");
    assert_eq!(usage_error.lines().count(), 1, "{usage_error}");
    Ok(())
}

#[test]
fn an_interrupted_demo_leaves_no_temporary_files() -> TestResult {
    let dir = tempfile::tempdir()?;
    fs::create_dir_all(dir.path().join("tmp"))?;
    // At this rate, the transfer takes minutes, so it is still running when the signal arrives.
    let slow = "rate=1Mbit/s rtt=10ms buffer=125kB";
    let mut running = demo(dir.path(), slow, &["--size", "20MB", "--sizing", "kernel"])
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stderr = BufReader::new(running.stderr.take().ok_or("no standard error")?).lines();
    let first = stderr.next().ok_or("it said nothing")??;
    if first.contains("no permission for namespaces") {
        sweetspot_testing::skipped(&first);
        return Ok(());
    }
    // 20 MB at 1 Mbit/s, with 1448 of 1500 bytes as payload: 166 s.
    assert_eq!(first, "1 transfer of 20 MB: 166 s or more in all");
    let second = stderr.next().ok_or("it said nothing more")??;
    assert!(second.ends_with("running"), "{second}");
    // After SIGINT, the program says that there is no result, unless the caller ignores the signal.
    let (signal, code, words) = match sweetspot_testing::is_ignored(2) {
        true => ("TERM", 128 + 15, None),
        false => (
            "INT",
            128 + 2,
            Some("sweetspot: interrupted before a variant was complete; there is no result"),
        ),
    };
    // The shell's built-in: a minimal system has no program kill.
    Command::new("sh").args(["-c", &format!("kill -s {signal} {}", running.id())]).status()?;
    let last = stderr.last().transpose()?;
    let status = running.wait()?;
    assert_eq!((status.code(), last.as_deref()), (Some(code), words));
    assert!(is_empty(&dir.path().join("tmp"))?);
    Ok(())
}

#[test]
fn an_interrupted_demo_keeps_the_completed_variants() -> TestResult {
    if sweetspot_testing::is_ignored(2) {
        sweetspot_testing::skipped("SIGINT is ignored here");
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    fs::create_dir_all(dir.path().join("tmp"))?;
    // 4 kB per 100 ms is 320 kbit/s: the second variant takes 50 s.
    let path = "rate=20Mbit/s rtt=100ms buffer=125kB";
    let mut running = demo(dir.path(), path, &["--size", "2MB", "--sizing", "kernel,fixed:4kB"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stderr = BufReader::new(running.stderr.take().ok_or("no standard error")?).lines();
    let mut is_second = false;
    while let Some(line) = stderr.next().transpose()? {
        if line.contains("no permission for namespaces") {
            sweetspot_testing::skipped(&line);
            return Ok(());
        }
        is_second = line.starts_with("2/2 ") && line.ends_with("running");
        if is_second {
            break;
        }
    }
    assert!(is_second);
    Command::new("sh").args(["-c", &format!("kill -s INT {}", running.id())]).status()?;
    let last = stderr.last().transpose()?;
    let output = running.wait_with_output()?;
    assert_eq!(output.status.code(), Some(130));
    let words = "sweetspot: interrupted; the results are those of 1 of 2 variants";
    assert_eq!(last.as_deref(), Some(words));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("kernel+cubic") && !shown.contains("fixed:4kB"), "{shown}");
    let outcome: Value = serde_json::from_slice(&fs::read(dir.path().join("out/outcome.json"))?)?;
    assert_eq!(outcome["variants"].as_array().map(Vec::len), Some(1));
    assert!(is_empty(&dir.path().join("tmp"))?);
    Ok(())
}

/// Slow start moves up to 500 kB: twice the sum of the path's 125 kB and the buffer's 125 kB.
#[test]
fn warnings_about_a_small_size_and_an_unusable_variant_come_first() -> TestResult {
    let dir = tempfile::tempdir()?;
    let chosen = ["--size", "200kB", "--sizing", "kernel,kernel+nosuch"];
    let Some(output) = run(dir.path(), &chosen)? else { return Ok(()) };
    let printed = String::from_utf8_lossy(&output.stderr);
    let early = printed.split("1/2 ").next().unwrap_or_default();
    assert!(early.contains("slow start alone may move 500 kB on this path"), "{printed}");
    assert!(
        early.contains("kernel+nosuch cannot run: congestion control nosuch is not"),
        "{printed}"
    );
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.lines().all(|line| line.chars().count() <= 80 || line.contains('/')), "{shown}");
    let legend = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(legend.contains("90 % at s: when goodput"), "{shown}");
    Ok(())
}

#[test]
fn bad_input_is_rejected_before_any_file_is_created() -> TestResult {
    let dir = tempfile::tempdir()?;
    fs::create_dir_all(dir.path().join("tmp"))?;
    let empty = dir.path().join("empty");
    fs::write(&empty, "")?;
    let empty = empty.to_string_lossy().into_owned();
    for (arguments, word) in [
        (vec!["--file", "/nonexistent"], "/nonexistent"),
        (vec!["--file", "/"], "not a regular file"),
        (vec!["--file", empty.as_str()], "it is empty"),
        (vec!["--size", "200"], "has no unit"),
        (vec!["--size", "0B"], "one byte"),
        (vec!["--sizing", "sobas,best"], "unknown sizing"),
        (vec!["--sizing", "sobas+"], "congestion control"),
        (vec!["--sizing", "sobas,sobas+cubic"], "sobas+cubic is listed twice"),
        (vec!["--sizing", "kernel+nosuch"], "congestion control nosuch is not loaded"),
    ] {
        let output = demo(dir.path(), PATH, &arguments).output()?;
        let usage_error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(usage_error.contains(word), "{arguments:?}: {usage_error}");
    }
    assert!(is_empty(&dir.path().join("tmp"))?);
    Ok(())
}
