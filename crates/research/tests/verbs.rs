//! The program's verbs end to end. Without permission for namespaces, tests that need the lab are
//! skipped.

use std::error::Error;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use sweetspot_testing::browser::Browser;

type TestResult = Result<(), Box<dyn Error>>;

/// A scenario of the standing set, cut short.
const SHORT: [&str; 4] = ["--set", "warmup=1s", "--set", "duration=1s"];

fn scenario() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/standing/window-limited.toml")
}

/// Runs a verb with its files in `place`; `None` if namespaces are not allowed.
fn in_lab(place: &Path, arguments: &[&str]) -> Result<Option<Output>, Box<dyn Error>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot-research"));
    let output = command.args(arguments).env("TMPDIR", place).output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("no permission for namespaces") {
        sweetspot_testing::skipped(stderr.trim());
        return Ok(None);
    }
    Ok(Some(output))
}

fn research(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot-research"));
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn usage_error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

/// Each buffer is measured for an hour, so the signal comes before the first result.
#[test]
fn an_interrupted_experiment_reports_that_it_has_no_result() -> TestResult {
    if sweetspot_testing::is_ignored(2) {
        return Ok(());
    }
    let place = tempfile::tempdir()?;
    let mut command = research(place.path(), &["lab", "blog", "--each", "3600s"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let status = format!("/proc/{}/status", child.id());
    // Waits until it catches SIGINT, the second signal, or has ended.
    let catches = || {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let caught = field("SigCgt:").and_then(|set| u64::from_str_radix(set, 16).ok());
        caught.is_none_or(|set| set & 2 != 0)
            || field("State:").is_some_and(|state| state.starts_with('Z'))
    };
    while !catches() {
        std::thread::yield_now();
    }
    let interrupt = format!("kill -s INT {}", child.id());
    Command::new("sh").args(["-c", &interrupt]).status()?;
    let output = child.wait_with_output()?;
    if usage_error(&output).contains("no permission for namespaces") {
        sweetspot_testing::skipped(usage_error(&output));
        return Ok(());
    }
    // A shell reports 130.
    assert_eq!(output.status.signal(), Some(2), "{}", usage_error(&output));
    assert_eq!(
        stderr(&output),
        "sweetspot-research: interrupted before the experiment was complete; there is no result\n"
    );
    Ok(())
}

#[test]
fn validate_compares_three_engines_in_words_and_numbers() -> TestResult {
    let (place, file) = (tempfile::tempdir()?, scenario());
    let file = file.to_str().ok_or("a path that is no text")?;
    let arguments = [&["validate", file][..], &SHORT].concat();
    let Some(output) = in_lab(place.path(), &arguments)? else { return Ok(()) };
    assert!(output.status.success(), "{}", usage_error(&output));
    let text = String::from_utf8(output.stdout)?;
    for part in ["The engines ", "The emulation can"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Output for a terminal is not Markdown.
    let mut rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert!(rows.any(|row| row == ["theory", "sim", "lab", "gap"]), "{text}");
    assert!(!text.contains('|') && !text.contains("**"), "{text}");
    Ok(())
}

#[test]
fn the_blog_experiment_has_five_rows() -> TestResult {
    let place = tempfile::tempdir()?;
    let document = place.path().join("blog.md");
    let out = document.to_str().ok_or("a path that is no text")?;
    // Long enough that some data arrives in each run, even if a busy machine pauses.
    let arguments = ["lab", "blog", "--each", "1s", "--json", "--out", out];
    let Some(output) = in_lab(place.path(), &arguments)? else { return Ok(()) };
    assert!(output.status.success(), "{}", usage_error(&output));
    let blog: Value = serde_json::from_slice(&output.stdout)?;
    let rows = blog["rows"].as_array().ok_or("no rows")?;
    assert_eq!(rows.len(), 5);
    let number = |row: &Value, name: &str| row[name].as_f64().ok_or(format!("{name}: {row}"));
    let mut window_before = 0.0;
    for row in rows {
        // socket(7): the kernel doubles a program's request.
        assert_eq!(number(row, "buffer_bytes")?, 2.0 * number(row, "asked_bytes")?, "{row}");
        // The path's own RTT: 5 ms in each direction. No packet is lost as long as windows fit the
        // buffer. (On a machine that stalls, the sender's timers may still cause retransmissions,
        // RFC 5682.)
        assert!(number(row, "rtt_min_s")? >= 0.010, "{row}");
        for way in ["up", "down"] {
            assert_eq!(row["certificate"]["emulator"][way]["dropped_by_buffer"], 0, "{row}");
        }
        // Independent of the machine: SOBAS eq. (3), and the link's capacity without headers.
        let window = number(row, "window_advertised_bytes")?;
        let max = (window * 8.0 / number(row, "rtt_min_s")?).min(94.15e6);
        let measured = number(row, "measured_bps")?;
        assert!(measured > 0.0 && measured <= max, "{row}");
        // A larger buffer gives a larger window.
        assert!(window >= window_before, "{row}");
        window_before = window;
    }
    let text = std::fs::read_to_string(document)?;
    assert!(text.contains("## Certificates") && text.contains("| 125 | 250 |"), "{text}");
    Ok(())
}

#[test]
fn a_population_cannot_be_run_by_the_theory_engine() -> TestResult {
    let output =
        research(Path::new("."), &["gauntlet", "--engine", "theory", "--paths", "1"]).output()?;
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--engine theory"), "{}", stderr(&output));
    assert!(stderr(&output).contains("choose sim or lab"), "{}", stderr(&output));
    Ok(())
}

#[test]
fn reproduce_without_a_name_explains_itself_and_writes_nothing() -> TestResult {
    let directory = tempfile::tempdir()?;
    let output = research(directory.path(), &["reproduce"]).output()?;
    assert!(output.status.success());
    let words = String::from_utf8(output.stdout)?;
    assert!(words.contains("figures and tables") && words.contains("--list"), "{words}");
    assert!(words.lines().all(|line| line.chars().count() <= 80), "{words}");
    assert_eq!(std::fs::read_dir(&directory)?.count(), 0);
    Ok(())
}

#[test]
fn the_error_for_an_unknown_figure_suggests_the_nearest() -> TestResult {
    let directory = tempfile::tempdir()?;
    let output = research(directory.path(), &["reproduce", "bdp-fgi3"]).output()?;
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean bdp-fig3?"), "{}", stderr(&output));
    assert!(!directory.path().join("reproduction").exists());
    Ok(())
}

#[test]
fn theory_draws_a_figure_as_page_document_and_picture() -> TestResult {
    let directory = tempfile::tempdir()?;
    let here = directory.path();
    let arguments = ["reproduce", "fig4", "--engine", "theory", "--out", "out"];
    let output = research(here, &arguments).output()?;
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(here.join("out/papers.html"))?;
    assert!(page.contains("Figure 4") && page.contains("38.3"), "eq. (8) at B_t = 1250");
    for reference in ["http:", "src=", "@import", "url("] {
        assert!(!page.contains(reference), "{reference} in the page");
    }
    assert!(std::fs::read_to_string(here.join("out/papers.md"))?.contains("+0.9 %"), "38.33 of 38");
    assert!(
        std::fs::read_to_string(here.join("out/papers/bdp-fig4.svg"))?.starts_with("<svg xmlns")
    );
    Ok(())
}

#[test]
fn a_seed_that_json_would_round_is_rejected() -> TestResult {
    let file = scenario();
    let file = file.to_str().ok_or("a path that is no text")?;
    let arguments = ["validate", file, "--seed", "9007199254740993"];
    let output = research(Path::new("."), &arguments).output()?;
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("expected a number from 0 to below 9007199254740992"));
    Ok(())
}

#[test]
fn the_figures_page_fits_a_phone_and_is_readable() -> TestResult {
    let Some(mut browser) = Browser::start()? else {
        sweetspot_testing::skipped("there is no chromium here (apt-get install chromium)");
        return Ok(());
    };
    let directory = tempfile::tempdir()?;
    let arguments = ["reproduce", "bdp-fig3", "--engine", "theory", "--out", "figures"];
    assert!(research(directory.path(), &arguments).output()?.status.success());
    let page = directory.path().join("figures/papers.html");
    assert_eq!(browser.faults(&page)?, Vec::<String>::new());
    Ok(())
}

#[test]
fn invalid_arguments_are_usage_errors_and_write_nothing() -> TestResult {
    let place = tempfile::tempdir()?;
    for (line, part) in [
        ("reproduce nosuch", "unknown figure nosuch"),
        ("gauntlet --engine theory", "--engine theory: a population"),
        ("gauntlet --chosen-on 1 --seed 1", "--seed 1: it chose"),
        ("lab blog --each 0s", "--each 0 s: give"),
        ("bench matrix --test nosuch --out m.md --journal m.j", "--test nosuch: unknown test"),
        ("bench advice --situations 0 --out a.md", "--situations"),
        ("bench limits --only nosuch --out l.md --results r", "--only nosuch: no run has it"),
    ] {
        let output = research(place.path(), &line.split(' ').collect::<Vec<_>>()).output()?;
        let words = usage_error(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {words}");
        assert!(words.contains(part), "{line}: {words}");
        assert_eq!(std::fs::read_dir(place.path())?.count(), 0, "{line}");
    }
    Ok(())
}

#[test]
fn a_page_of_figures_names_the_command_that_wrote_it() -> TestResult {
    let place = tempfile::tempdir()?;
    let line = ["reproduce", "drs-fig3", "--engine", "theory", "--out", "figs"];
    let output = research(place.path(), &line).output()?;
    assert!(output.status.success(), "{}", usage_error(&output));
    let page = std::fs::read_to_string(place.path().join("figs/papers.html"))?;
    assert!(page.contains("reproduce drs-fig3 --engine theory --out figs"));
    Ok(())
}
