//! The command's output, for any kind of standard output and standard error.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};

type TestResult = Result<(), Box<dyn std::error::Error>>;

fn sweetspot(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A file on a device that is always full.
fn full() -> std::io::Result<File> {
    File::options().write(true).open("/dev/full")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_failed_write_to_stdout_is_reported() -> TestResult {
    for arguments in [&["generate", "completions", "bash"][..], &["advise", "host"], &["--help"]] {
        let output = sweetspot(arguments).stdout(full()?).stderr(Stdio::piped()).output()?;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let stderr = stderr(&output);
        assert!(stderr.starts_with("sweetspot: cannot write to standard output"), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    Ok(())
}

#[test]
fn a_closed_output_pipe_is_not_an_error() -> TestResult {
    // The last one would never end by itself.
    let endless = ["top", "--json", "--interval", "100ms"];
    for arguments in
        [&["generate", "completions", "bash"][..], &["advise", "host"], &["--help"], &endless]
    {
        let (reader, writer) = std::io::pipe()?;
        drop(reader);
        let output = sweetspot(arguments).stdout(writer).stderr(Stdio::piped()).output()?;
        assert!(output.status.success(), "{arguments:?}");
        assert_eq!(stderr(&output), "", "{arguments:?}");
    }
    Ok(())
}

#[test]
fn unwritable_stderr_does_not_change_the_exit_code() -> TestResult {
    let path = "rate=100Mbit/s rtt=1ms buffer=125kB";
    let mut emulate = sweetspot(&["emulate", "--path", path, "--", "sh", "-c", "exit 7"]);
    let seen = emulate.output()?;
    if stderr(&seen).contains("no permission for namespaces") {
        sweetspot_testing::skipped(stderr(&seen).trim());
        return Ok(());
    }
    assert_eq!(emulate.stderr(full()?).status()?.code(), seen.status.code());
    assert_eq!(sweetspot(&["frobnicate"]).stderr(full()?).status()?.code(), Some(2));
    Ok(())
}

#[test]
fn an_endless_scenario_file_is_rejected() -> TestResult {
    let output = sweetspot(&["run", "/dev/zero"]).output()?;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("/dev/zero: more than 16 MiB"), "{}", stderr(&output));
    Ok(())
}

#[test]
fn a_scenario_that_is_not_utf8_is_rejected_with_its_line_number() -> TestResult {
    let file = std::env::temp_dir().join(format!("latin1-{}.toml", std::process::id()));
    std::fs::write(&file, b"seed = 1\ntitle = \"na\xefve\"\n")?;
    let output = sweetspot(&["run", &file.to_string_lossy()]).output()?;
    std::fs::remove_file(&file)?;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("line 2: it is not UTF-8"), "{}", stderr(&output));
    Ok(())
}

#[test]
fn a_usage_error_takes_one_line_and_names_the_next_step() -> TestResult {
    for (arguments, word) in [
        (&["frobnicate"][..], "frobnicate"),
        (&["serve"], "--dir"),
        (&["send", "file", "ticket", "--sizing", "best"], "unknown sizing \"best\""),
        (&["emulate", "--path", "rate=1Mbit/s rtt=1ms buffer=9kB"], "COMMAND"),
        (&["advise", "window", "--rate", "fast", "--rtt", "1ms"], "\"fast\" is not a rate"),
    ] {
        let output = sweetspot(arguments).output()?;
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.starts_with("sweetspot: ") && stderr.contains(word), "{stderr}");
        assert!(stderr.trim_end().ends_with("try '--help'"), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    Ok(())
}

#[test]
fn a_seed_that_json_numbers_cannot_hold_is_rejected() -> TestResult {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/jitter.toml");
    let output = sweetspot(&["run", scenario, "--seed", "9007199254740993"]).output()?;
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("expected a number from 0 to below 9007199254740992"));
    Ok(())
}

#[test]
fn advice_with_cross_traffic_is_simulated_unless_disabled() -> TestResult {
    let question = ["advise", "window", "--rate", "5Mbit", "--rtt", "30ms", "--buffer", "25kB"];
    let request = |more: &[&str]| -> std::io::Result<serde_json::Value> {
        let output = sweetspot(&[&question, more].concat()).arg("--json").output()?;
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    let simulated = request(&["--cross", "elephants:50%"])?;
    let tried = simulated["simulated"]["windows"].as_array().ok_or("no windows")?;
    let held = |w: &&serde_json::Value| w["window_bytes"] == simulated["recommended_bytes"];
    assert!(tried.iter().any(|w| held(&w)), "{simulated}");
    assert!(request(&["--cross", "elephants:50%", "--verify", "none"])?["simulated"].is_null());
    // Without a simulation, the closed form is the answer.
    assert!(request(&[])?["simulated"].is_null());
    Ok(())
}

/// The page's information about the program: `{"simulator": true, ...}`.
fn about(address: &str) -> Result<String, Box<dyn std::error::Error>> {
    let host = address.split('/').nth(2).ok_or("no host in the address")?;
    let path = address.trim_end().trim_start_matches("http://").trim_start_matches(host);
    let mut stream = TcpStream::connect(host)?;
    write!(stream, "GET {path}about HTTP/1.1\r\nHost: {host}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn ui_describes_the_diagnose_page_only_in_a_build_that_has_it() -> TestResult {
    let mut ui = sweetspot(&["ui"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut address = String::new();
    BufReader::new(ui.stdout.take().ok_or("no standard output")?).read_line(&mut address)?;
    let about = about(&address);
    ui.kill()?;
    let printed = stderr(&ui.wait_with_output()?);
    let simulates = about?.contains("\"simulator\":true");
    assert!(!printed.contains("diagnose page"), "{printed}");
    let help = String::from_utf8(sweetspot(&["ui", "--help"]).output()?.stdout)?;
    assert_eq!(help.contains("A second page diagnoses captures"), simulates, "{help}");
    Ok(())
}

#[test]
fn ui_rejects_a_port_and_an_operand_with_the_next_step() -> TestResult {
    for (arguments, words) in [
        (["ui", "--port=foo"], "expected a port from 0 to 65535; 0 takes a free one"),
        (["ui", "--port=99999"], "expected a port from 0 to 65535; 0 takes a free one"),
        (["ui", "send.jsonl"], "write --watch send.jsonl"),
    ] {
        let output = sweetspot(&arguments).output()?;
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains(words), "{printed}");
    }
    Ok(())
}

#[test]
fn the_overview_names_only_existing_verbs_and_every_page_has_its_sections() -> TestResult {
    let directory = tempfile::tempdir()?;
    let output = sweetspot(&["generate", "man", "."]).current_dir(&directory).output()?;
    assert!(output.status.success(), "{}", stderr(&output));
    let overview = std::fs::read_to_string(directory.path().join("man7/sweetspot.7"))?;
    for verb in ["measure", "demo", "generate"] {
        assert!(overview.contains(&format!("sweetspot\\-{verb} (1)")), "{verb}");
    }
    let program = std::fs::read_to_string(directory.path().join("man1/sweetspot.1"))?;
    for word in
        ["SWEETSPOT_VERB_OPTION", "\\fB3\\fR", "\\fB23\\fR", "\\fB127\\fR", "sweetspot\\-run"]
    {
        assert!(program.contains(word), "{word}: {program}");
    }
    let emulate = std::fs::read_to_string(directory.path().join("man1/sweetspot-emulate.1"))?;
    let send = std::fs::read_to_string(directory.path().join("man1/sweetspot-send.1"))?;
    let (_, environment) = send.split_once(".SH ENVIRONMENT").ok_or("a section")?;
    let (environment, _) = environment.split_once(".SH").ok_or("the next section")?;
    assert!(environment.contains("SWEETSPOT_TICKET"), "{environment}");
    // A verb without options has no defaults for them, but the verbs below it do.
    let advise = std::fs::read_to_string(directory.path().join("man1/sweetspot-advise.1"))?;
    let window = std::fs::read_to_string(directory.path().join("man1/sweetspot-advise-window.1"))?;
    let variable = |page: &str| page.contains("_OPTION\\fR");
    assert!(!variable(&advise) && variable(&window), "{advise}");
    assert!(emulate.contains("\\fB127\\fR") && emulate.contains("Any other code"), "{emulate}");
    for section in ["EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES"] {
        assert!(overview.replace('"', "").contains(&format!(".SH {section}")), "{section}");
    }
    let named = overview.lines().filter_map(|line| line.strip_prefix(".BR sweetspot"));
    let pages: Vec<String> = named
        .filter_map(|rest| rest.split_once(" (1)"))
        .map(|(verb, _)| format!("sweetspot{}.1", verb.replace('\\', "")))
        .collect();
    assert!(pages.len() > 10, "{pages:?}");
    for page in pages {
        assert!(directory.path().join("man1").join(&page).exists(), "{page}");
    }
    // A page on a file (man5) has different sections.
    let listed = ["man1", "man7"].map(|section| std::fs::read_dir(directory.path().join(section)));
    let [commands, overviews] = listed;
    for page in commands?.chain(overviews?) {
        let page = page?.path();
        let text = std::fs::read_to_string(&page)?;
        for section in ["EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES"] {
            assert!(
                text.contains(&format!(".SH {section}"))
                    || text.contains(&format!(".SH \"{section}\"")),
                "{}: {section}",
                page.display()
            );
        }
    }
    Ok(())
}

#[test]
fn an_error_says_that_a_file_is_not_a_directory() -> TestResult {
    let file = tempfile::NamedTempFile::new()?;
    let path = file.path().to_string_lossy().into_owned();
    let output = sweetspot(&["generate", "man", &path]).output()?;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(" is not a directory; name another"), "{}", stderr(&output));
    Ok(())
}

#[test]
fn advice_for_a_path_equals_advice_for_its_parameters() {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    let path = "duration = \"1s\"\n[path]\nrate = \"50Mbit/s\"\nrtt = \"40ms\"\nbuffer = \"125kB\"\npacket = \"1500B\"\n";
    std::fs::write(file.path(), path).unwrap();
    let advice = |question: &[&str]| {
        let output = sweetspot(&["advise", "window", "--json"]).args(question).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let numbers = advice(&["--rate", "50Mbit/s", "--rtt", "40ms", "--buffer", "125kB"]);
    assert_eq!(advice(&["--path", "rate=50Mbit/s rtt=40ms buffer=125kB"]), numbers);
    assert_eq!(advice(&["--path", file.path().to_str().unwrap()]), numbers);
    let faster = advice(&["--path", "rate=5Mbit/s rtt=40ms buffer=125kB", "--rate", "50Mbit/s"]);
    assert_eq!(faster, numbers);
}

#[test]
fn an_old_verb_name_yields_one_line_with_the_new_name() -> TestResult {
    let renamed = [
        ("test", "sweetspot measure --quick"),
        ("mft", "sweetspot sweep --find-best"),
        ("key", "sweetspot serve key"),
        ("invite", "sweetspot serve invite"),
        ("man", "sweetspot generate man"),
        ("completions", "sweetspot generate completions"),
        ("gauntlet", "sweetspot-research gauntlet"),
        ("lab", "sweetspot-research lab"),
        ("reproduce", "sweetspot-research reproduce"),
        ("validate", "sweetspot-research validate"),
    ];
    for (old, new) in renamed {
        let output = sweetspot(&[old, "--anything"]).output()?;
        let line = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(line.contains(&format!("`{new}`")) && line.lines().count() == 1, "{line}");
    }
    Ok(())
}

#[test]
fn the_help_lists_at_most_eighteen_verbs_in_four_groups() -> TestResult {
    let help = String::from_utf8(sweetspot(&["--help"]).output()?.stdout)?;
    for group in ["Move files:", "Inspect connections and paths:", "Tune:", "Study:"] {
        assert!(help.contains(group), "{help}");
    }
    let is_verb = |line: &&str| line.starts_with("  ") && line.as_bytes()[2].is_ascii_lowercase();
    let verbs = help.lines().skip_while(|line| *line != "Move files:");
    let verbs = verbs.take_while(|line| *line != "Options:").filter(is_verb);
    assert!((12..=18).contains(&verbs.count()), "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    Ok(())
}
