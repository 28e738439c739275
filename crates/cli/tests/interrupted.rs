//! A verb ended by Ctrl-C says what becomes of its work.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use sweetspot_linux::clock;
use sweetspot_linux::signals::{CLEANING_TIME, Signal};
use sweetspot_units::Duration;

type TestResult = Result<(), Box<dyn Error>>;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

/// Runs `arguments` with an open standard input, and sends SIGINT once the verb catches or holds this signal. `None` if this
/// process ignores the signal, because its child then does, too.
fn interrupted(arguments: &[&str]) -> Result<Option<Output>, Box<dyn Error>> {
    interrupted_with(arguments, || {})
}

/// The same; `afterwards` runs after the signal.
fn interrupted_with(
    arguments: &[&str],
    afterwards: impl FnOnce(),
) -> Result<Option<Output>, Box<dyn Error>> {
    let signal = Signal::INTERRUPT;
    if sweetspot_testing::is_ignored(signal.number()) {
        sweetspot_testing::skipped("SIGINT is ignored here");
        return Ok(None);
    }
    let mut command = Command::new(PROGRAM);
    command.args(arguments).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let input = child.stdin.take();
    let limit = clock::now() + Duration::from_secs(20);
    while !sweetspot_testing::handles_signal(child.id(), signal.number()) {
        if child.try_wait()?.is_some() || clock::now() > limit {
            break;
        }
        clock::sleep_until(clock::now() + Duration::from_millis(10));
    }
    signal.send(child.id());
    afterwards();
    let output = child.wait_with_output()?;
    drop(input);
    Ok(Some(output))
}

/// Asserts that the verb printed one such line, and that the signal ended it, which a shell shows as 130.
fn assert_interrupted(output: &Output, left: &str) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(message.matches("sweetspot: interrupted").count(), 1, "{message}");
    assert!(message.contains(left), "{message}");
    assert_eq!(output.status.signal(), Some(Signal::INTERRUPT.number()), "{}", output.status);
}

#[test]
fn an_interrupted_live_diagnosis_still_prints_its_report() -> TestResult {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let end = listener.local_addr()?;
    let _open = TcpStream::connect(end)?;
    let arguments = ["diagnose", &end.to_string(), "--for", "1h", "--json"];
    let Some(output) = interrupted(&arguments)? else { return Ok(()) };
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let remark = report["remarks"][0].as_str().unwrap_or_default();
    assert!(remark.starts_with("interrupted after ") && remark.ends_with("of 3600 s"), "{report}");
    Ok(())
}

#[test]
fn an_interrupted_diagnosis_of_a_recording_says_that_it_has_no_result() -> TestResult {
    let Some(output) = interrupted(&["diagnose", "-"])? else { return Ok(()) };
    assert_interrupted(&output, "there is no diagnosis");
    Ok(())
}

#[test]
fn an_interrupted_measurement_prints_or_locates_its_results_so_far() -> TestResult {
    let scratch = tempfile::tempdir()?;
    let mut server = Command::new(PROGRAM)
        .args(["serve", "--listen", "127.0.0.1:0", "--dir"])
        .arg(scratch.path())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut ticket = String::new();
    let output = server.stdout.take().ok_or("no output")?;
    BufReader::new(output).read_line(&mut ticket)?;
    let series = scratch.path().join("day.jsonl").display().to_string();
    // The step under way waits for the server longer than other verbs have for cleaning up.
    let pause = (CLEANING_TIME + Duration::from_millis(500)).as_secs_f64();
    let held_up = format!("kill -STOP {0}; sleep {pause}; kill -CONT {0}", server.id());
    let once = interrupted_with(&["measure", ticket.trim()], || {
        let done = Command::new("sh").args(["-c", &held_up]).status();
        assert!(done.is_ok_and(|status| status.success()));
    });
    let watched = interrupted(&["measure", ticket.trim(), "--watch", "1h", "--series", &series]);
    server.kill()?;
    server.wait()?;
    let Some((once, watched)) = once?.zip(watched?) else { return Ok(()) };
    let message = String::from_utf8_lossy(&once.stderr);
    assert!(message.contains("interrupted; after this step, the results"), "{message}");
    assert_eq!(once.status.code(), Some(130), "{message}");
    let card = String::from_utf8_lossy(&once.stdout);
    assert!(card.starts_with("Path to 127.0.0.1:"), "{card}");
    assert!(card.contains("the measurement was interrupted"), "{card}");
    let heading = card.lines().next().unwrap_or_default();
    assert!(heading.ends_with(" and interrupted: the results so far"), "{card}");
    // The first measurement takes seconds, and the signal comes before its end.
    assert_eq!(watched.status.code(), Some(130));
    let message = String::from_utf8_lossy(&watched.stderr);
    assert!(message.contains("interrupted; no measurement was complete"), "{message}");
    assert!(message.contains(&series) && !Path::new(&series).exists(), "{message}");
    Ok(())
}

/// The lab's processes are forks of the program, and print nothing.
#[test]
fn an_interrupted_lab_run_prints_one_message() -> TestResult {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/elephants.toml");
    let arguments = ["run", scenario, "--engine", "lab"];
    let Some(output) = interrupted(&arguments)? else { return Ok(()) };
    if String::from_utf8_lossy(&output.stderr).contains("no permission for namespaces") {
        sweetspot_testing::skipped("no permission for namespaces");
        return Ok(());
    }
    assert_interrupted(&output, "there is no result");
    Ok(())
}
