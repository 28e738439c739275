//! Errors for a user without privileges over a process.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration as StdDuration;

use sweetspot_linux::clock;
use sweetspot_linux::signals::Signal;
use sweetspot_units::Duration;

/// The ID of the user nobody.
const NOBODY: u32 = 65534;

/// A copy of the program that the user nobody may run. `None` unless this process is root, which alone can become
/// nobody.
fn copy(scratch: &tempfile::TempDir) -> Option<PathBuf> {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        sweetspot_testing::skipped("only root can run a program as another user (run as root)");
        return None;
    }
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = scratch.path().join("sweetspot");
    // Another process writes the copy: a program cannot be started while it is open for writing, even in a child
    // of this process.
    let mut by = Command::new("cp");
    assert!(by.arg(env!("CARGO_BIN_EXE_sweetspot")).arg(&copy).status().unwrap().success());
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    Some(copy)
}

fn as_nobody(program: &PathBuf, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).uid(NOBODY).gid(NOBODY).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Asserts that the program fails with exactly one line.
fn refused(program: &PathBuf, arguments: &[&str], words: &str) {
    let output = as_nobody(program, arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    assert!(stderr.contains(words), "{arguments:?}: {stderr}");
}

#[test]
fn an_error_names_the_permission_that_an_unprivileged_user_lacks() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(program) = copy(&scratch) else { return };
    let ours = std::process::id().to_string();
    let forbidden = format!("no permission for the sockets of process {ours}: run as root");
    refused(&program, &["tune", "attach", &ours], &forbidden);
    let forbidden = format!("no permission to see which sockets process {ours} has");
    refused(&program, &["diagnose", &ours], &forbidden);
}

#[test]
fn an_unprivileged_user_sees_connections_without_their_programs() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(program) = copy(&scratch) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let end = client.local_addr().unwrap().to_string();
    let arguments = ["top", "--once", "--json", "--interval", "200ms", "--filter", &end];
    let output = as_nobody(&program, &arguments).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["connections"][0]["local"].is_string(), "{json}");
    assert!(json["connections"][0]["pid"].is_null(), "{json}");
}

/// The message appears once, even if many processes are out of reach.
#[test]
fn an_unprivileged_daemon_reports_inaccessible_processes_once() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(program) = copy(&scratch) else { return };
    let policy = policy_for_a_download(&scratch);
    let mut command = as_nobody(&program, &["tune", "daemon", "--policy", &policy]);
    command.args(["--via", "pidfd"]);
    let stderr = daemon(&mut command, "their downloads are left alone (run as root");
    // Between the lines with which it began and ended.
    assert!(stderr.contains(" (1 rule) via pidfd; "), "{stderr}");
    let sight = "it sees only the sockets of its own user's processes";
    assert!(stderr.lines().next().is_some_and(|line| line.contains(sight)), "{stderr}");
    assert_eq!(stderr.lines().count(), 3, "{stderr}");
}

/// Exactly the capabilities of packaging/sweetspot-tune.service.
#[test]
fn two_capabilities_are_enough_for_a_daemon() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(program) = copy(&scratch) else { return };
    let policy = policy_for_a_download(&scratch);
    let two = "-all,+sys_ptrace,+net_admin";
    let sets = ["--inh-caps", "--ambient-caps", "--bounding-set"].map(|set| format!("{set}={two}"));
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]).args(sets);
    command.arg(&program).args(["tune", "daemon", "--policy", &policy]).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if Command::new("setpriv").arg("--version").output().is_err() {
        sweetspot_testing::skipped("there is no setpriv (apt-get install util-linux)");
        return;
    }
    let stderr = daemon(&mut command, ": limited, window");
    assert!(stderr.contains(": lifted"), "{stderr}");
}

#[test]
fn the_systemd_unit_is_valid_and_has_low_exposure() {
    let scratch = tempfile::tempdir().unwrap();
    let unit = include_str!("../../../../packaging/sweetspot-tune.service");
    let file = scratch.path().join("sweetspot-tune.service");
    fs::write(&file, unit.replace("/usr/bin/sweetspot", env!("CARGO_BIN_EXE_sweetspot"))).unwrap();
    let analyze = |arguments: &[&str]| {
        Command::new("systemd-analyze")
            .args(arguments)
            .arg(&file)
            .env("SYSTEMD_COLORS", "0")
            .output()
    };
    let Ok(verified) = analyze(&["verify"]) else {
        sweetspot_testing::skipped("there is no systemd-analyze (apt-get install systemd)");
        return;
    };
    let stderr = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !stderr.contains("sweetspot-tune.service"), "{stderr}");
    // The exposure level goes from 0 (safe) to 10 (exposed). Before systemd 250, systemd-analyze cannot compute it
    // for a file.
    let rated = analyze(&["security", "--offline=true"]).unwrap();
    let table = String::from_utf8_lossy(&rated.stdout);
    let overall = table.lines().find_map(|l| l.split_once("service: ")?.1.split(' ').next());
    let exposure: Option<f64> = overall.and_then(|n| n.parse().ok());
    assert!(exposure.is_none_or(|exposure| exposure <= 2.5), "{exposure:?}");
}

/// A policy for a download of this process, which only root may touch.
fn policy_for_a_download(scratch: &tempfile::TempDir) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    // Sends about 10 MB/s until the test is over.
    thread::spawn(move || {
        while server.write_all(&[7; 10_000]).is_ok() {
            clock::sleep_until(clock::now() + Duration::from_millis(1));
        }
    });
    thread::spawn(move || io::copy(&mut client, &mut io::sink()));
    let policy = scratch.path().join("policy.toml");
    let text = format!("[[rule]]\nports = [{port}]\ngoal = \"throughput\"\n");
    fs::write(&policy, text).unwrap();
    fs::set_permissions(&policy, fs::Permissions::from_mode(0o644)).unwrap();
    policy.display().to_string()
}

/// A daemon's output. A second after `word` appears, which must be within a minute, the daemon gets a signal.
fn daemon(command: &mut Command, word: &str) -> String {
    let mut daemon = command.spawn().unwrap();
    let (id, stderr) = (daemon.id(), daemon.stderr.take().unwrap());
    let (seen, waits) = mpsc::channel();
    thread::spawn(move || {
        // The output ended: the daemon has exited by itself.
        if waits.recv_timeout(StdDuration::from_secs(60)) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        clock::sleep_until(clock::now() + Duration::from_secs(1));
        Signal::TERMINATE.send(id);
    });
    let mut printed = String::new();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if line.contains(word) {
            // The receiver needs one message, and may be gone afterwards.
            let _ = seen.send(());
        }
        printed += &format!("{line}\n");
    }
    daemon.wait().unwrap();
    assert!(printed.contains(word), "{printed}");
    printed
}
