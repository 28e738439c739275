//! Tests `sweetspot run --series`: the file is written completely, or there is a one-line error.

use std::process::{Command, Output};

const SCENARIO: &str = r#"
title = "two transfers"
seed = 3
duration = "2s"
[path]
rate = "10Mbit/s"
rtt = "20ms"
buffer = "20pkt"
[[transfer]]
count = 2
sizing = "fixed:20pkt"
"#;

fn run(directory: &std::path::Path, series: &str, more: &[&str]) -> Output {
    let scenario = directory.join("s.toml");
    std::fs::write(&scenario, SCENARIO).unwrap();
    Command::new(env!("CARGO_BIN_EXE_sweetspot"))
        .current_dir(directory)
        .args(["run", "s.toml", "--series", series])
        .args(more)
        .output()
        .unwrap()
}

fn usage_error(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).trim_end().to_owned()
}

#[test]
fn equal_seeds_write_identical_parquet_series() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a.parquet", "b.parquet"] {
        let output = run(directory.path(), name, &["--interval", "10ms"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let read = |name| std::fs::read(directory.path().join(name)).unwrap();
    let bytes = read("a.parquet");
    assert_eq!((&bytes[..4], &bytes[bytes.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    assert_eq!(bytes, read("b.parquet"));
    // Only the requested files remain.
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 3);
}

#[test]
fn the_file_extension_selects_the_series_format() {
    let directory = tempfile::tempdir().unwrap();
    assert!(run(directory.path(), "a.csv", &[]).status.success());
    let text = std::fs::read_to_string(directory.path().join("a.csv")).unwrap();
    assert!(text.starts_with("at_s,transfer,event,goodput_bps,"), "{text}");
    // 2 s, sampled every 100 ms, for two transfers.
    assert!(text.lines().filter(|line| !line.contains("limited")).count() >= 40, "{text}");
    let message = usage_error(&run(directory.path(), "a.txt", &[]));
    assert!(message.contains("a.txt") && message.contains("FILE.csv or FILE.parquet"), "{message}");
}

#[test]
fn a_csv_series_yields_as_many_plots_as_a_parquet_series() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a.csv", "a.parquet"] {
        assert!(run(directory.path(), name, &[]).status.success());
        let drawn = Command::new(env!("CARGO_BIN_EXE_sweetspot"))
            .current_dir(directory.path())
            .args(["report", name, "--svg", &format!("{name}-pictures"), "--out", "page.html"])
            .output()
            .unwrap();
        assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
    }
    let pictures = |name: &str| {
        let directory = std::fs::read_dir(directory.path().join(format!("{name}-pictures")));
        directory.unwrap().count()
    };
    assert_eq!(pictures("a.csv"), pictures("a.parquet"));
    assert!(pictures("a.csv") >= 4);
}

/// The rates in a line of output, in Mbit/s.
fn rates(line: &str) -> Vec<f64> {
    let words: Vec<&str> = line.split(' ').collect();
    let before_unit = words.windows(2).filter(|pair| pair[1].starts_with("Mbit/s"));
    before_unit.filter_map(|pair| pair[0].parse().ok()).collect()
}

#[test]
fn mirrored_traffic_is_reported_per_direction_and_below_the_link_rate() {
    let directory = tempfile::tempdir().unwrap();
    let elephants =
        "reverse = \"mirror\"\n[[cross]]\nkind = \"elephants\"\ncount = 4\nwindow = \"5pkt\"";
    let scenario = SCENARIO.replace("[[transfer]]", &format!("{elephants}\n[[transfer]]"));
    std::fs::write(directory.path().join("m.toml"), scenario).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_sweetspot"))
        .current_dir(directory.path())
        .args(["run", "m.toml"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let cross = text.lines().find(|line| line.starts_with("cross 0")).unwrap();
    let rates = rates(cross);
    assert_eq!(rates.len(), 2, "{cross}");
    assert!(rates.iter().all(|rate| (0.1..10.0).contains(rate)), "{cross}");
}

#[test]
fn a_transfer_that_starts_after_the_run_ends_is_reported_as_unmeasured() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(directory.path(), "x.csv", &["--set", "transfer.start=3s"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let line = "transfer 0: nothing measured, it starts at 3 s and the run ends at 2 s";
    assert!(text.contains(line), "{text}");
    // A run without any throughput is a failure; a single transfer with throughput is enough.
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("s.toml: no transfer moved data between 0 s and 2 s"), "{printed}");
    let one = format!("{SCENARIO}[[transfer]]\nstart = \"3s\"\n");
    std::fs::write(directory.path().join("one.toml"), one).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    let output = command.current_dir(directory.path()).args(["run", "one.toml"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn an_unwritable_series_is_reported_with_the_next_step() {
    let directory = tempfile::tempdir().unwrap();
    // A link to the device, so that at worst the link is replaced.
    std::os::unix::fs::symlink("/dev/full", directory.path().join("full")).unwrap();
    let message = usage_error(&run(directory.path(), "full", &[]));
    assert!(message.ends_with("; free some space or name a file elsewhere"), "{message}");
    let message = usage_error(&run(directory.path(), "nowhere/x.parquet", &[]));
    assert!(
        message.contains("nowhere/x.parquet") && message.ends_with("; create the directory first")
    );
    let message = usage_error(&run(directory.path(), ".", &[]));
    assert!(message.ends_with("; name a file in it"), "{message}");
}

#[test]
fn an_interval_without_a_series_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_sweetspot"))
        .current_dir(directory.path())
        .args(["run", "@elephants", "--interval", "10ms"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("--interval needs --series or --out"), "{words}");
}

#[test]
fn a_sampling_interval_that_is_too_short_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let message = usage_error(&run(directory.path(), "x.parquet", &["--interval", "1ns"]));
    assert!(
        message.contains("--interval 1 ns") && message.contains("use 1 us or more"),
        "{message}"
    );
}
