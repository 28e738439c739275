//! On a terminal no line is wider than it, but for text to paste. `script(1)` makes the terminal.

use std::path::Path;
use std::process::Command;

/// The output of `sweetspot` on a terminal of that width; `None` without script(1).
fn on_terminal(columns: usize, arguments: &str) -> Option<String> {
    let program = env!("CARGO_BIN_EXE_sweetspot");
    // A terminal without rows reports no size.
    let command = format!("stty rows 24 cols {columns}; {program} {arguments}");
    let mut script = Command::new("script");
    script.args(["--quiet", "--command", &command, "/dev/null"]).env("TERM", "dumb");
    script.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    match script.output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).replace('\r', "")),
        Err(error) => {
            sweetspot_testing::skipped(format!("no script(1): {error} (apt-get install bsdutils)"));
            None
        }
    }
}

/// Whether a line may be as long as it is: a command, or one word.
fn is_to_paste(line: &str) -> bool {
    let line = line.trim();
    !line.contains(' ') || ["sweetspot ", "sysctl ", "tc "].iter().any(|p| line.starts_with(p))
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let calls = [
        "--help",
        "advise router --help",
        "serve invite --help",
        "demo --help",
        "advise router",
        "advise window --rate 10Gbit/s --rtt 80ms --kernel 6.18 --explain",
        "advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s --verify none --explain",
        "emulate --list",
        "run @elephants",
        "sweep @elephants --over path.buffer=100pkt,500pkt --engine theory",
        "diagnose no-such-file-whose-name-is-rather-long.pcap",
    ];
    for call in calls {
        for columns in [60, 80, 120] {
            let Some(text) = on_terminal(columns, call) else { return };
            assert!(!text.trim().is_empty(), "{call}");
            for line in text.lines().filter(|line| !is_to_paste(line)) {
                assert!(line.chars().count() <= columns, "{call}, {columns} columns: {line}");
            }
        }
    }
}

#[test]
fn a_script_is_whole_on_any_terminal() {
    let Some(narrow) = on_terminal(60, "generate completions bash") else { return };
    assert_eq!(Some(narrow), on_terminal(500, "generate completions bash"));
}
