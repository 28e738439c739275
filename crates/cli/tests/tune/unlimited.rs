//! Why connections were not limited: the closing lines of tuners, and the last line of their events.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use sweetspot_linux::signals::Signal;

use crate::download::{Server, wait_for};
use crate::inside::{OwnCgroup, daemon_on, ended, possible};

/// Sends 200 kB to the port in its argument, prints a line once all bytes are acknowledged (SIOCOUTQ is 0), and waits for the
/// end of its input.
const UPLOAD: &str = "\
import fcntl, socket, struct, sys, termios, time
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
s.sendall(bytes(200000))
while struct.unpack('i', fcntl.ioctl(s, termios.TIOCOUTQ, bytes(4)))[0]: time.sleep(0.01)
print('sent', flush=True)
sys.stdin.read()";

/// Connects to the first port without sending, and downloads from the second one.
const DOWNLOAD: &str = "\
import socket, sys
idle, s = [socket.create_connection(('127.0.0.1', int(port))) for port in sys.argv[1:]]
while s.recv(65536): pass";

fn python(script: &str, ports: &[u16]) -> Child {
    let mut command = Command::new("python3");
    command.args(["-c", script]).args(ports.iter().map(u16::to_string));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

fn attach(child: &Child, scratch: &Path, options: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_sweetspot"))
        .args(["tune", "attach", "--events"])
        .arg(scratch.join("events"))
        .args(options)
        .arg(child.id().to_string())
        .env("RUNTIME_DIRECTORY", scratch)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn last_event(scratch: &Path) -> serde_json::Value {
    let events = std::fs::read_to_string(scratch.join("events")).unwrap();
    serde_json::from_str(events.lines().last().unwrap()).unwrap()
}

/// A port that accepts connections and discards the data.
fn sink() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
        }
    });
    address
}

fn metrics(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Asserts the closing line and the last event of a tuner that saw an upload without a queue.
fn of_upload(options: &[&str], closing: &str, reason: &str) {
    let scratch = tempfile::tempdir().unwrap();
    let peer = sink();
    let mut upload = python(UPLOAD, &[peer.port()]);
    let sent = BufReader::new(upload.stdout.take().unwrap()).lines().next();
    assert_eq!(sent.unwrap().unwrap(), "sent");
    // Finds a free port.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let served = address.to_string();
    let options = [options, &["--metrics", &served]].concat();
    let tuner = attach(&upload, scratch.path(), &options);
    wait_for("the connection", || {
        metrics(address)?.contains("\nsweetspot_connections_watched 1\n").then_some(())
    });
    Signal::TERMINATE.send(tuner.id());
    let (code, message) = ended(tuner);
    let beginning = format!(
        "sweetspot: watching process {} (python3) via pidfd; Ctrl-C ends tuning",
        upload.id()
    );
    let closing = format!("sweetspot: 1 upload to {peer} seen, not limited: {closing}");
    assert_eq!(
        (code, message.lines().collect::<Vec<_>>()),
        (Some(0), vec![&beginning[..], &closing])
    );
    let events = std::fs::read_to_string(scratch.path().join("events")).unwrap();
    assert!(events.starts_with("{\"t_s\":") && events.contains("\"event\":\"not_limited\""));
    let last = last_event(scratch.path());
    assert_eq!((&last["event"], &last["tuned"]), (&"ended".into(), &0.into()), "{last}");
    let expected =
        serde_json::json!([{ "reason": reason, "connections": 1, "peer": peer.to_string() }]);
    assert_eq!(last["not_limited"], expected);
    drop(upload.stdin.take());
    upload.wait().unwrap();
}

#[test]
fn an_upload_without_a_standing_queue_is_reported_with_the_reason() {
    of_upload(&["--send"], "it built no standing queue", "no_standing_queue");
}

#[test]
fn an_untuned_upload_is_reported_with_the_missing_option() {
    of_upload(&[], "uploads need --send", "upload_without_send");
}

#[test]
fn a_process_without_a_connection_is_reported() {
    let (scratch, quiet) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut idle = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let mut tuner = attach(&idle, scratch.path(), &[]);
    let mut lines = BufReader::new(tuner.stderr.take().unwrap()).lines();
    let beginning = lines.next().unwrap().unwrap();
    Signal::TERMINATE.send(tuner.id());
    assert_eq!(tuner.wait().unwrap().code(), Some(0));
    let process = format!("process {} (cat)", idle.id());
    assert_eq!(beginning, format!("sweetspot: watching {process} via pidfd; Ctrl-C ends tuning"));
    let why = format!("no TCP connection of {process} was seen");
    assert_eq!(lines.next().unwrap().unwrap(), format!("sweetspot: {why}"));
    assert!(lines.next().is_none());
    assert_eq!(last_event(scratch.path())["why"], why);
    let tuner = attach(&idle, quiet.path(), &["--quiet"]);
    // The tuner opens its log before it starts to watch.
    wait_for("the tuner", || quiet.path().join("events").exists().then_some(()));
    Signal::TERMINATE.send(tuner.id());
    assert_eq!(ended(tuner), (Some(0), String::new()));
    assert_eq!(last_event(quiet.path())["why"], why);
    drop(idle.stdin.take());
    idle.wait().unwrap();
}

#[test]
fn a_connection_to_another_peer_is_reported() {
    let (server, scratch) = (Server::start(), tempfile::tempdir().unwrap());
    let other = sink();
    let mut download = python(DOWNLOAD, &[other.port(), server.port]);
    let peer = format!("127.0.0.1:{}", server.port);
    let tuner = attach(&download, scratch.path(), &["--peer", &peer]);
    let log = || std::fs::read_to_string(scratch.path().join("events")).unwrap_or_default();
    // One search finds both connections.
    wait_for("a limit", || log().contains("\"event\":\"taken\"").then_some(()));
    server.stop();
    download.wait().unwrap();
    let (code, message) = ended(tuner);
    let closing = format!("1 connection to {other} seen, not limited: --peer names another peer");
    assert!(code == Some(0) && message.ends_with(&closing), "{message}");
    let last = last_event(scratch.path());
    assert_eq!((&last["tuned"], &last["why"]), (&1.into(), &closing.into()), "{last}");
}

/// In a pipe, too, each of its lines is printed.
#[test]
fn a_daemon_names_the_rule_that_excludes_a_connection_and_unreachable_rules() {
    let (server, scratch) = (Server::start(), tempfile::tempdir().unwrap());
    let mut download = python(DOWNLOAD, &[sink().port(), server.port]);
    let (policy, port) = (scratch.path().join("policy.toml"), server.port);
    let rules = format!(
        "[[rule]]\nports = [{port}]\ngoal = \"leave\"\n[[rule]]\nports = [{port}]\ngoal = \"throughput\"\n"
    );
    std::fs::write(&policy, rules).unwrap();
    let daemon = Command::new(env!("CARGO_BIN_EXE_sweetspot"))
        .args(["tune", "daemon", "--via", "pidfd", "--dry-run", "--verbose", "--policy"])
        .arg(&policy)
        .arg("--events")
        .arg(scratch.path().join("events"))
        .env("RUNTIME_DIRECTORY", scratch.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let rule = "\"rule\":{\"number\":1,\"line\":1,\"goal\":\"leave\"}";
    let log = || std::fs::read_to_string(scratch.path().join("events")).unwrap_or_default();
    wait_for("the connection", || log().contains(rule).then_some(()));
    Signal::TERMINATE.send(daemon.id());
    let (code, message) = ended(daemon);
    assert_eq!(code, Some(0), "{message}");
    let hidden =
        "policy.toml: line 4: never reached: the rule at line 1 matches all of its connections";
    let line = format!("[{}] 127.0.0.1:{port}: not limited", download.id());
    let why = ": a rule of the policy leaves it alone (rule 1, line 1: leave)";
    let closing = format!(
        "1 connection to 127.0.0.1:{port} seen, not limited: a rule of the policy leaves it alone"
    );
    for words in [hidden, &line, why, &closing] {
        assert!(message.contains(words), "{words}: {message}");
    }
    server.stop();
    download.wait().unwrap();
}

/// Two sets of programs cannot be attached at once, but a dry run limits nothing.
#[test]
fn a_command_is_tuned_via_pidfd_while_a_dry_run_uses_bpf() {
    if !possible() {
        return;
    }
    let (scratch, cgroup) = (tempfile::tempdir().unwrap(), OwnCgroup::make());
    let daemon = daemon_on(&cgroup, scratch.path(), &["--dry-run"]);
    // The daemon opens its log after its programs are attached and have a lease.
    wait_for("the daemon", || scratch.path().join("events.jsonl").exists().then_some(()));
    let run = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
        command.args(["tune", "run"]).args(options).args(["--", "echo", "it runs"]);
        cgroup.0.enter_on_exec(&mut command).unwrap();
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        ended(command.spawn().unwrap())
    };
    let (code, message) = run(&[]);
    assert_eq!((code, message.lines().count()), (Some(0), 1), "{message}");
    assert!(message.contains("a dry run already uses bpf here"), "{message}");
    assert!(message.ends_with("; using pidfd instead"), "{message}");
    assert_eq!(run(&["--quiet"]), (Some(0), String::new()));
    let (code, message) = run(&["--via", "bpf"]);
    assert!(code == Some(125) && message.contains("a dry run already uses bpf"), "{message}");
    assert!(message.ends_with("; end it, or add --via pidfd"), "{message}");
    Signal::TERMINATE.send(daemon.id());
    assert_eq!(ended(daemon).0, Some(0));
}
