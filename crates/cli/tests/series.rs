//! `sweetspot run --series`: the file is written whole, or the error is one line.

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
fn the_series_is_a_parquet_file_and_the_same_for_the_same_seed() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a.parquet", "b.parquet"] {
        let output = run(directory.path(), name, &["--interval", "10ms"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let read = |name| std::fs::read(directory.path().join(name)).unwrap();
    let bytes = read("a.parquet");
    assert_eq!((&bytes[..4], &bytes[bytes.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    assert_eq!(bytes, read("b.parquet"));
    // Nothing but what was asked for is left.
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 3);
}

#[test]
fn a_series_that_cannot_be_written_is_named_with_the_next_step() {
    let directory = tempfile::tempdir().unwrap();
    // A link, so that nothing worse than a link can be replaced.
    std::os::unix::fs::symlink("/dev/full", directory.path().join("full")).unwrap();
    let message = usage_error(&run(directory.path(), "full", &[]));
    assert!(message.ends_with("; free some room or name a file elsewhere"), "{message}");
    let message = usage_error(&run(directory.path(), "nowhere/x.parquet", &[]));
    assert!(
        message.contains("nowhere/x.parquet") && message.ends_with("; make the directory first")
    );
    let message = usage_error(&run(directory.path(), ".", &[]));
    assert!(message.ends_with("; name another file"), "{message}");
}

#[test]
fn samples_without_end_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let message = usage_error(&run(directory.path(), "x.parquet", &["--interval", "1ns"]));
    assert!(
        message.contains("--interval 1 ns") && message.contains("take 1 us or more"),
        "{message}"
    );
}
