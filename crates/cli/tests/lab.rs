//! The lab's verbs end to end. If the machine does not allow namespaces, these tests print this and
//! pass.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

type TestResult = Result<(), Box<dyn Error>>;

/// Options that shorten a scenario of the standing set.
const SHORT: [&str; 4] = ["--set", "warmup=1s", "--set", "duration=1s"];

fn scenario() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/standing/window-limited.toml")
}

/// Runs a verb with its files in `place`; `None` if namespaces are not allowed.
fn sweetspot(place: &Path, arguments: &[&str]) -> Result<Option<Output>, Box<dyn Error>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    let output = command.args(arguments).env("TMPDIR", place).output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("no permission for namespaces") {
        sweetspot_testing::skipped(stderr.trim());
        return Ok(None);
    }
    Ok(Some(output))
}

fn usage_error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

#[test]
fn a_lab_run_prints_an_outcome_with_a_certificate() -> TestResult {
    let (place, file) = (tempfile::tempdir()?, scenario());
    let file = file.to_str().ok_or("a path that is no text")?;
    let arguments = [&["run", file, "--engine", "lab", "--json"][..], &SHORT].concat();
    let Some(output) = sweetspot(place.path(), &arguments)? else { return Ok(()) };
    assert!(output.status.success(), "{}", usage_error(&output));
    let finished: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!((&finished["engine"], &finished["seed"]), (&Value::from("lab"), &Value::from(1)));
    let goodput = finished["transfers"][0]["goodput_bps"].as_f64().ok_or("no goodput")?;
    // At most one window of 50,048 B per 40 ms (SOBAS eq. 3).
    assert!(goodput > 0.0 && goodput <= 50_048.0 * 8.0 / 0.040, "{goodput}");
    assert!(finished["certificate"]["trust"].is_boolean());
    assert_eq!(std::fs::read_dir(place.path())?.count(), 0);
    Ok(())
}

#[test]
fn a_lab_sweep_reports_progress_run_by_run() -> TestResult {
    let (place, file) = (tempfile::tempdir()?, scenario());
    let file = file.to_str().ok_or("a path that is no text")?;
    let over = ["--over", "transfer.sizing=fixed:25kB,fixed:50kB", "--seeds", "1"];
    let sweep = ["sweep", file, "--engine", "lab", "--json"];
    let arguments = [&sweep[..], &over, &SHORT].concat();
    let Some(output) = sweetspot(place.path(), &arguments)? else { return Ok(()) };
    assert!(output.status.success(), "{}", usage_error(&output));
    // One line per point.
    let points = String::from_utf8(output.stdout)?;
    assert_eq!(points.lines().count(), 2, "{points}");
    // Each run takes a while, and is reported when it is done.
    let printed = String::from_utf8(output.stderr)?;
    let reports: Vec<&str> = printed.lines().filter(|line| line.contains('/')).collect();
    assert_eq!(reports, ["1/2 runs", "2/2 runs"], "{printed}");
    Ok(())
}

#[test]
fn the_lab_rejects_an_unsupported_scenario_in_one_line_with_a_remedy() -> TestResult {
    let (place, file) = (tempfile::tempdir()?, scenario());
    let file = file.to_str().ok_or("a path that is no text")?;
    let run = ["run", file, "--engine", "lab", "--set", "send_pool=1MB"];
    let Some(output) = sweetspot(place.path(), &run)? else { return Ok(()) };
    assert!(!output.status.success());
    assert_eq!(
        usage_error(&output),
        "sweetspot: the lab engine cannot run this scenario: a kernel gives each socket a buffer of its own; leave send_pool out"
    );
    Ok(())
}
