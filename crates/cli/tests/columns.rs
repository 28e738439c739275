//! On a terminal, no line is wider than the terminal, except text to paste. `script(1)` provides
//! the terminal.

use std::path::Path;
use std::process::Command;

/// The output of `sweetspot` on a terminal of this width; `None` without script(1).
fn on_terminal(columns: usize, arguments: &str) -> Option<String> {
    on_terminal_called("dumb", columns, arguments)
}

/// The same on a terminal of type `kind`: a dumb terminal shows no bars.
fn on_terminal_called(kind: &str, columns: usize, arguments: &str) -> Option<String> {
    let program = env!("CARGO_BIN_EXE_sweetspot");
    // Without rows, the terminal would not report its size.
    let command = format!("stty rows 24 cols {columns}; {program} {arguments}");
    let mut script = Command::new("script");
    script.args(["--quiet", "--command", &command, "/dev/null"]).env("TERM", kind);
    script.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    match script.output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).replace('\r', "")),
        Err(error) => {
            sweetspot_testing::skipped(format!("no script(1): {error} (apt-get install bsdutils)"));
            None
        }
    }
}

/// Whether a line may exceed the width: a command, or a single word.
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
        "run @elephants --engine theory",
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

/// The lab runs in real time: here for two seconds.
#[test]
fn a_lab_run_shows_its_elapsed_time() {
    let run = "run @standing/window-limited --engine lab --set warmup=1s --set duration=1s";
    for columns in [60, 120] {
        let Some(text) = on_terminal_called("xterm", columns, run) else { return };
        if text.contains("no permission for namespaces") {
            sweetspot_testing::skipped(text.trim());
            return;
        }
        assert!(text.contains("] 1/2 s"), "{text}");
    }
}

#[test]
fn prose_wraps_at_80_columns_without_a_terminal() {
    let mut run = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    let output = run.args(["run", "@elephants", "--engine", "theory"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("assumed:") && text.contains("bottleneck: "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

/// Four rows of 64 columns: the loss is on a line below, next to both keys.
#[test]
fn a_narrow_table_keeps_each_heading_above_its_column() {
    let call = "sweep scenarios/standing/sweet-spot.toml --over path.buffer=100pkt,200pkt \
        --over transfer.sizing=fixed:50pkt,fixed:60pkt";
    let Some(text) = on_terminal(40, call) else { return };
    let parts: Vec<Vec<&str>> = text
        .split("\n\n")
        .map(|part| part.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>())
        .filter(|lines| lines.first().is_some_and(|head| head.starts_with("path.buffer")))
        .collect();
    assert!(parts.len() > 1, "{text}");
    for part in &parts {
        assert_eq!(part.len(), 5, "{text}");
        let names_both = |row: &&str| row.contains("00pkt ") && row.contains(" fixed:");
        assert!(part[1..].iter().all(names_both), "{text}");
    }
    let headings = ["Mbit/s", "RTT, ms", "loss, %"];
    assert!(headings.iter().all(|name| parts.iter().any(|part| part[0].contains(name))), "{text}");
}

#[test]
fn help_examples_can_be_pasted_at_any_terminal_width() {
    let example = "sweetspot sweep @elephants --find-best --set path.buffer=313pkt --seeds 4";
    for columns in [40, 60, 80, 120] {
        let Some(text) = on_terminal(columns, "sweep --help") else { return };
        let commands = text.replace(" \\\n", " ");
        let words: Vec<&str> = commands.split_whitespace().collect();
        assert!(words.join(" ").contains(example), "{columns} columns: {text}");
    }
}

#[test]
fn a_generated_script_is_never_wrapped() {
    let Some(narrow) = on_terminal(60, "generate completions bash") else { return };
    assert_eq!(Some(narrow), on_terminal(500, "generate completions bash"));
}
