//! Properties of `sweetspot emulate` from a user's view.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Output, Stdio};

const SWEETSPOT: &str = env!("CARGO_BIN_EXE_sweetspot");
const PATH: &str = "rate=100Mbit/s rtt=10ms buffer=125kB";
/// The user "nobody", without special rights.
const NOBODY: u32 = 65534;

fn emulate(program: &str, options: &[&str], line: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["emulate", "--path", PATH]).args(options).args(["--", "sh", "-c", line]);
    command
}

fn run(options: &[&str], line: &str) -> Output {
    emulate(SWEETSPOT, options, line).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Whether this user may create namespaces; prints a message if not.
fn may_emulate() -> bool {
    let stderr = stderr(&run(&["--quiet"], "true"));
    let may = !stderr.contains("no permission for namespaces");
    if !may {
        sweetspot_testing::skipped(&stderr);
    }
    may
}

/// Starts `command`, which prints a line when it is ready, and waits for that line.
fn start(command: &mut Command) -> Child {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

fn send(signal: &str, process: u32) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {process}")]).status();
    assert!(sent.unwrap().success());
}

/// The processes that have `word` in their command line.
fn processes_with(word: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|p| fs::read(p.path().join("cmdline")).ok())
        .map(|words| String::from_utf8_lossy(&words).replace('\0', " "))
        .filter(|words| words.contains(word))
        .collect()
}

#[test]
fn emulate_returns_its_commands_exit_code() {
    if !may_emulate() {
        return;
    }
    assert_eq!(run(&[], "exit 7").status.code(), Some(7));
    assert_eq!(run(&[], "kill -KILL $$").status.code(), Some(128 + 9));
}

#[test]
fn packets_cross_the_path_and_a_certificate_is_printed() {
    if !may_emulate() {
        return;
    }
    let line = "python3 -c 'import os, socket; socket.socket(socket.AF_INET, \
                socket.SOCK_DGRAM).sendto(b\"x\", (os.environ[\"SWEETSPOT_FAR\"], 9))'";
    let output = run(&["--json"], line);
    let json = stderr(&output);
    let certificate: serde_json::Value = serde_json::from_str(json.trim()).unwrap();
    assert_eq!(certificate["up"]["packets_in"], 1, "{json}");
    // A single packet makes no backlog.
    let words = stderr(&run(&[], line));
    let is_trusted = words.starts_with("Emulation certificate: TRUST");
    assert_eq!(
        is_trusted,
        words.contains("no queue lasted long enough to test the rate"),
        "{words}"
    );
}

#[test]
fn the_certificate_can_be_written_to_a_file() {
    if !may_emulate() {
        return;
    }
    let file = std::env::temp_dir().join(format!("certificate-{}.json", std::process::id()));
    let output = run(&["--certificate", file.to_str().unwrap()], "true");
    assert!(stderr(&output).contains("Emulation certificate"), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!(json["up"]["asked_bps"], 100_000_000);
}

#[test]
fn each_error_takes_one_line() {
    let wrong = |arguments: &[&str], code: i32, word: &str| {
        let output = Command::new(SWEETSPOT).arg("emulate").args(arguments).output().unwrap();
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(word) && stderr.lines().count() == 1, "{stderr}");
    };
    wrong(&["--path", "rate=1Mb rtt=1ms buffer=9kB", "--", "true"], 2, "unknown unit \"Mb\"");
    wrong(&["--path", "rate=0bit/s rtt=1ms buffer=9kB", "--", "true"], 2, "rate=0bit/s");
    wrong(&["--path", "rate=1Mbit/s rtt=1ms buffer=1B", "--", "true"], 2, "below one packet");
    wrong(&["--path", "rte=1Mbit/s rtt=1ms buffer=9kB", "--", "true"], 2, "(did you mean rate?)");
    wrong(&["--path", "@lt", "--", "true"], 2, "(did you mean @lte?)");
    wrong(&["--path", "lte", "--", "true"], 2, "(did you mean @lte?)");
    wrong(&["--path", "@elephnats", "--", "true"], 2, "did you mean @elephants?");
    wrong(&["--path", "elephants", "--", "true"], 2, "@elephants is a scenario");
    let twice = "rate=1Mbit/s rtt=20ms delay=50ms buffer=9kB";
    wrong(&["--path", twice, "--", "true"], 2, "both ways add up to 100 ms, but rtt is 20 ms");
    let trace = tempfile::NamedTempFile::new().unwrap();
    fs::write(trace.path(), "0,1Mbit/s\n1,2Mbit/s\n").unwrap();
    let file = trace.path().to_str().unwrap();
    for (option, side) in [
        ("--trace-up", "--trace-down FILE, or down.rate="),
        ("--trace-down", "--trace-up FILE, or up.rate="),
    ] {
        wrong(&["--path", "rtt=20ms buffer=1bdp", option, file, "--", "true"], 2, side);
    }
    wrong(&["--pth", PATH, "--", "true"], 2, "a similar argument exists: '--path'; try '--help'");
    wrong(
        &["--path", PATH, "--certificate", "/", "--", "true"],
        1,
        "--certificate /: that is a directory",
    );
    if may_emulate() {
        wrong(&["--path", PATH, "--", "no-such-program"], 127, "cannot run no-such-program");
        let nowhere = ["--quiet", "--certificate", "/nowhere/c", "--path", PATH, "--", "true"];
        wrong(&nowhere, 1, "--certificate /nowhere/c");
        let missing =
            ["--quiet", "--far", "exec no-such-program", "--path", PATH, "--", "sleep", "60"];
        let output = Command::new(SWEETSPOT).arg("emulate").args(missing).output().unwrap();
        assert_eq!(output.status.code(), Some(127), "{}", stderr(&output));
        assert!(stderr(&output).contains("the far command ended early with exit code 127"));
        let far = ["--quiet", "--far", "exit 3", "--path", PATH, "--", "sleep", "0.5"];
        wrong(&far, 0, "the far command ended early with exit code 3");
    }
}

#[test]
fn a_signal_ends_the_command_and_the_certificate_is_still_printed() {
    if !may_emulate() {
        return;
    }
    for (signal, code) in [("TERM", 128 + 15), ("INT", 128 + 2)] {
        if signal == "INT" && sweetspot_testing::is_ignored(2) {
            continue;
        }
        let child = start(&mut emulate(SWEETSPOT, &[], "echo ready; exec sleep 60"));
        send(signal, child.id());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        assert!(stderr(&output).contains("Emulation certificate"), "{}", stderr(&output));
    }
}

#[test]
fn the_far_command_gets_sigterm_before_sigkill() {
    if !may_emulate() {
        return;
    }
    let ready = std::env::temp_dir().join(format!("far-ready-{}", std::process::id()));
    let file = ready.display();
    let far = format!("trap 'echo written; exit' TERM; touch {file}; while :; do sleep 0.05; done");
    let output = run(&["--far", &far], &format!("until [ -e {file} ]; do sleep 0.05; done"));
    fs::remove_file(&ready).unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "written\n");
}

#[test]
fn a_second_signal_kills_a_command_that_ignores_the_first() {
    if !may_emulate() {
        return;
    }
    let line = "trap 'echo heard' TERM; echo ready; while true; do sleep 0.1; done";
    let mut child = start(&mut emulate(SWEETSPOT, &[], line));
    send("TERM", child.id());
    let mut received = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut received).unwrap();
    send("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 9));
}

#[test]
fn killing_the_parent_leaves_no_process_behind() {
    if !may_emulate() {
        return;
    }
    let nap = format!("4321.{}", std::process::id());
    let line = format!("setsid sleep {nap} & echo ready; exec sleep {nap}");
    let far = format!("exec sleep {nap}");
    let mut child = start(&mut emulate(SWEETSPOT, &["--far", &far], &line));
    assert!(processes_with(&nap).len() >= 4, "{:?}", processes_with(&nap));
    send("KILL", child.id());
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    // The pipe closes when the last process inside the namespaces has ended.
    child.stdout.as_mut().unwrap().read_to_end(&mut Vec::new()).unwrap();
    child.stderr.as_mut().unwrap().read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(processes_with(&nap), Vec::<String>::new());
}

#[test]
fn emulate_works_without_root() {
    // The owner of /proc/self is the user of this process.
    let me = fs::metadata("/proc/self").unwrap().uid();
    if me != 0 {
        sweetspot_testing::skipped("the other tests run without root already");
        return;
    }
    if !may_emulate() {
        return;
    }
    // A path that the user nobody may execute.
    let copy = std::env::temp_dir().join(format!("sweetspot-{}", std::process::id()));
    // Another process copies it: a program cannot start while it is open for writing, even by a child of
    // this process.
    assert!(Command::new("cp").arg(SWEETSPOT).arg(&copy).status().unwrap().success());
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = emulate(copy.to_str().unwrap(), &["--json"], "exit 7");
    let output = command.uid(NOBODY).gid(NOBODY).current_dir("/").output().unwrap();
    fs::remove_file(&copy).unwrap();
    if stderr(&output).contains("no permission for namespaces") {
        sweetspot_testing::skipped(stderr(&output));
        return;
    }
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(stderr(&output).contains("\"verdict\""), "{}", stderr(&output));
}

#[test]
fn an_invalid_trace_is_rejected_with_its_line_number() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "1\n2\nsoon\n").unwrap();
    let trace = file.path().to_str().unwrap();
    let output = run(&["--trace-up", trace], "true");
    let printed = stderr(&output);
    assert!(
        printed.contains(trace) && printed.contains("line 3 of the trace: \"soon\""),
        "{printed}"
    );
    assert!(!output.status.success());
}

/// The path of @elephants has a hop of 50 Mbit/s with 20 ms; the certificate repeats the rate.
#[test]
fn emulate_finds_the_path_of_a_built_in_scenario_by_name() {
    if !may_emulate() {
        return;
    }
    let mut command = Command::new(SWEETSPOT);
    command.args(["emulate", "--json", "--path", "@elephants", "--", "true"]);
    let printed = stderr(&command.output().unwrap());
    let certificate: serde_json::Value = serde_json::from_str(printed.trim()).unwrap();
    assert_eq!(certificate["up"]["asked_bps"], 50_000_000, "{printed}");
}

#[test]
fn named_paths_are_listed_with_their_sources() {
    let output = Command::new(SWEETSPOT).args(["emulate", "--list"]).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.contains("@lte") && printed.contains("WebPageTest") && printed.contains("Pantheon")
    );
    assert!(printed.lines().all(|line| line.chars().count() <= 100), "{printed}");
}

/// The emulation lasts as long as its command.
#[test]
fn a_scenario_needs_no_duration() {
    if !may_emulate() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("path.toml");
    fs::write(&file, "[path]\nrate = '10Mbit/s'\nrtt = '10ms'\nbuffer = '20pkt'").unwrap();
    let mut command = Command::new(SWEETSPOT);
    command.args(["emulate", "--json", "--path"]).arg(&file).args(["--", "true"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let certificate: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(certificate["up"]["asked_bps"], 10_000_000, "{certificate}");
}

#[test]
fn named_paths_are_also_listed_as_json() {
    let list = |options: &[&str]| {
        let mut command = Command::new(SWEETSPOT);
        let output = command.args(["emulate", "--list"]).args(options).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = list(&[]);
    let json: serde_json::Value = serde_json::from_str(&list(&["--json"])).unwrap();
    let paths = json["paths"].as_array().unwrap();
    assert_eq!(paths.len(), text.lines().filter(|line| line.starts_with('@')).count());
    for path in paths {
        let name = format!("@{}", path["name"].as_str().unwrap());
        let about = path["about"].as_str().unwrap();
        let has = |line: &str| line.starts_with(&format!("{name} ")) && line.ends_with(about);
        assert!(text.lines().any(has), "{path}");
    }
}
