//! Tests completions in bash itself: public verbs, and the values of options with named values.

use std::process::{Command, Stdio};

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// Bash's completions at the end of each line in `typed`; a trailing blank means that the last word is
/// empty.
fn offered(typed: &[&str]) -> Result<Option<Vec<String>>, Box<dyn std::error::Error>> {
    if !Command::new("bash").arg("-c").arg("true").status().is_ok_and(|status| status.success()) {
        sweetspot_testing::skipped("there is no bash here (install bash)");
        return Ok(None);
    }
    let script = Command::new(env!("CARGO_BIN_EXE_sweetspot"))
        .args(["generate", "completions", "bash"])
        .output()?;
    let mut source = String::from_utf8(script.stdout)?;
    // Calls the function like readline does: with the words, a colon as a separate word, and the index of
    // the last word.
    source += r#"
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
registered=$(complete -p sweetspot); registered=${registered#*-F }; registered=${registered%% *}
offer() {
    COMP_LINE="$1"; COMP_POINT=${#1}
    read -r -a COMP_WORDS <<< "${1//:/ : }"
    [[ "$1" == *[:\ ] ]] && COMP_WORDS+=("")
    COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); COMPREPLY=()
    "$registered" sweetspot "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    echo "${COMPREPLY[*]}"
}
"#;
    for line in typed {
        source += &format!("offer '{line}'\n");
    }
    let empty = tempfile::tempdir()?;
    let output = Command::new("bash")
        .args(["-c", &source])
        .current_dir(empty.path())
        .stdin(Stdio::null())
        .output()?;
    let printed = String::from_utf8(output.stdout)?;
    Ok(Some(printed.lines().map(str::to_owned).collect()))
}

#[test]
fn bash_offers_named_option_values() -> TestResult {
    let cases = [
        ("sweetspot send --sizing ", "sobas sobas:paper kernel fixed:1MB bdp max"),
        ("sweetspot send --sizing k", "kernel"),
        ("sweetspot copy --congestion ", "cubic bbr reno"),
        ("sweetspot report --theme ", "screen print"),
        ("sweetspot run x.toml --engine ", "sim theory lab"),
        ("sweetspot top --sort ", "traffic bytes rtt retransmitted program"),
        ("sweetspot tune run --via ", "pidfd bpf auto"),
        ("sweetspot tune run --goal ", "throughput less-than-best-effort"),
        ("sweetspot advise router --favour ", "throughput short latency"),
        // The text before the colon is not inserted again.
        ("sweetspot demo --sizing sobas:p", "paper"),
        ("sweetspot send --sizing sobas:paper --congestion b", "bbr"),
        ("sweetspot demo --sizing b", "bdp"),
        ("sweetspot diagnose --fo", "--follow --for --force"),
    ];
    let typed: Vec<&str> = cases.iter().map(|case| case.0).collect();
    let Some(offered) = offered(&typed)? else { return Ok(()) };
    for ((typed, expected), offered) in cases.iter().zip(&offered) {
        assert_eq!(offered, expected, "{typed}");
    }
    assert_eq!(offered.len(), cases.len());
    Ok(())
}

#[test]
fn bash_offers_no_internal_verb() -> TestResult {
    let Some(offered) = offered(&["sweetspot "])? else { return Ok(()) };
    let words: Vec<&str> = offered[0].split(' ').collect();
    assert!(words.contains(&"send") && words.contains(&"--version"), "{words:?}");
    assert!(!words.contains(&"endpoint"), "{words:?}");
    Ok(())
}
