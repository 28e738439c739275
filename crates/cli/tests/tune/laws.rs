use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use sweetspot_linux::clock;
use sweetspot_linux::live::LiveSocket;
use sweetspot_linux::processes;
use sweetspot_linux::signals::Signal;
use sweetspot_linux::tcp::{Info, options};
use sweetspot_units::{Bytes, Duration};

use crate::download::{
    Server, Tuned, UNCLAMPED, clamp, clamped, client, is_lifted, mover, wait_for,
};

fn sweetspot(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_sweetspot")).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// A download that the tuner has limited.
fn limited(server: &Server, scratch: &tempfile::TempDir) -> Tuned {
    let tuned = Tuned::start(server.port, scratch.path(), &[]);
    tuned.wait_for_event("taken");
    assert!(clamp(&tuned.connection()) < UNCLAMPED);
    tuned
}

/// Waits until the program has read all data sent. Reading new data makes the kernel tune the buffer, which overwrites any
/// clamp, even [`UNCLAMPED`].
pub fn quiet(server: &Server, connection: &LiveSocket) {
    let written = server.pause();
    wait_for("silence", || {
        let received = connection.with(|fd| Info::read(fd)).unwrap().unwrap().bytes_received;
        let unread = connection.with(|fd| options::unread(fd)).unwrap().unwrap();
        (received == Bytes::new(written) && unread == Bytes::ZERO).then_some(())
    });
    // The kernel itself never sets this clamp.
    assert!(clamp(connection) < UNCLAMPED);
}

#[test]
fn a_download_is_limited_via_pidfd_and_arrives_whole() {
    let (server, scratch) = (Server::start(), tempfile::tempdir().unwrap());
    let tuned = limited(&server, &scratch);
    server.stop();
    let events = tuned.events.clone();
    let (stderr, code) = tuned.finish();
    assert_eq!(code, Some(0));
    assert!(stderr.parse::<u64>().unwrap() > 60_000, "{stderr}");
    let log = std::fs::read_to_string(events).unwrap();
    let mut events: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = events.pop().unwrap();
    assert_eq!((&last["event"], &last["tuned"]), (&"ended".into(), &1.into()), "{log}");
    for event in events {
        assert!(event["why"].is_string() && event["remote"].is_string(), "{event}");
    }
}

#[test]
fn limits_are_lifted_when_the_tuner_is_killed() {
    let (server, scratch) = (Server::start(), tempfile::tempdir().unwrap());
    let tuned = limited(&server, &scratch);
    let connection = tuned.connection();
    quiet(&server, &connection);
    let held = clamp(&connection);
    Signal::KILL.send(tuned.tuner());
    wait_for("the end of the limit", || is_lifted(&connection, held).then_some(()));
    // The download continues.
    server.go_on();
    let received = || connection.with(|fd| Info::read(fd)).unwrap().unwrap().bytes_received;
    let before = received();
    wait_for("more data", || (received() > before).then_some(()));
    server.stop();
    // 128 + 9: the exit code shows that the tuner was killed.
    assert_eq!(tuned.finish().1, Some(137));
}

#[test]
fn a_clamp_set_by_the_program_is_never_raised_and_is_restored() {
    let own = Bytes::new(50_003);
    // The program sets its clamp before or after the tuner first sees the connection.
    for after in [0, 2] {
        let (server, scratch) = (Server::start(), tempfile::tempdir().unwrap());
        // While the server is paused, the kernel cannot overwrite the clamp, so the tuner sees it.
        server.pause();
        let client = clamped(server.port, after);
        let tuned = Tuned::start_client(client, server.port, scratch.path(), &[]);
        let connection = tuned.connection();
        wait_for("the program's own clamp", || (clamp(&connection) == own).then_some(()));
        // The tuner samples ten times a second.
        clock::sleep_until(clock::now() + Duration::from_secs(3));
        server.go_on();
        tuned.wait_for_event("taken");
        wait_for("the clamp again", || (clamp(&connection) <= own).then_some(()));
        quiet(&server, &connection);
        Signal::KILL.send(tuned.tuner());
        wait_for("the end of the limit", || (clamp(&connection) == own).then_some(()));
        server.stop();
    }
}

#[test]
fn limits_are_lifted_even_if_a_program_moves_its_socket() {
    for killed in [true, false] {
        let (server, scratch) = (Server::start(), tempfile::tempdir().unwrap());
        let port = server.port;
        let tuned = Tuned::start_client(mover(port), port, scratch.path(), &[]);
        tuned.wait_for_event("taken");
        let connection = wait_for("the move", || {
            let moved = |connection: &LiveSocket| connection.fd() == 200;
            Some(tuned.connection()).filter(moved)
        });
        quiet(&server, &connection);
        let held = clamp(&connection);
        if killed {
            Signal::KILL.send(tuned.tuner());
            wait_for("the end of the limit", || is_lifted(&connection, held).then_some(()));
        } else {
            assert!(!tuned.log().contains("\"event\":\"gone\""), "{}", tuned.log());
        }
        server.stop();
        tuned.finish();
    }
}

#[test]
fn limits_are_lifted_when_the_guardian_is_killed() {
    let (server, scratch) = (Server::start(), tempfile::tempdir().unwrap());
    let tuned = limited(&server, &scratch);
    let connection = tuned.connection();
    quiet(&server, &connection);
    let held = clamp(&connection);
    Signal::KILL.send(tuned.guardian.id());
    wait_for("the end of the limit", || is_lifted(&connection, held).then_some(()));
    tuned.wait_for_event("lifted");
    server.stop();
}

#[test]
fn a_dry_run_logs_and_changes_no_socket() {
    let (server, scratch) = (Server::start(), tempfile::tempdir().unwrap());
    let tuned = Tuned::start(server.port, scratch.path(), &["--dry-run"]);
    let before = clamp(&tuned.connection());
    tuned.wait_for_event("taken");
    // The kernel itself only raises the clamp.
    assert!(clamp(&tuned.connection()) >= before);
    server.stop();
    assert!(!tuned.log().contains("\"event\":\"lifted\""));
    assert!(tuned.log().lines().all(|line| line.contains("\"dry_run\":true")), "{}", tuned.log());
    assert_eq!(tuned.finish().1, Some(0));
}

#[test]
fn a_tuned_command_ends_with_a_summary_of_its_connections() {
    let (server, scratch) = (Server::start(), tempfile::tempdir().unwrap());
    let events = scratch.path().join("events.jsonl");
    let running = Command::new(env!("CARGO_BIN_EXE_sweetspot"))
        .args(["tune", "run", "--via", "pidfd", "--events"])
        .arg(&events)
        .arg("--")
        .args(client(server.port))
        .env("RUNTIME_DIRECTORY", scratch.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = || std::fs::read_to_string(&events).unwrap_or_default();
    wait_for("a limit", || log().contains("\"event\":\"taken\"").then_some(()));
    server.stop();
    let output = running.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("sweetspot: tuned 1 connection in "), "{printed}");
    let remote = format!("127.0.0.1:{}: limited for ", server.port);
    assert!(printed.lines().last().is_some_and(|line| line.contains(&remote)), "{printed}");
}

#[test]
fn tune_run_returns_its_commands_exit_code() {
    assert_eq!(sweetspot(&["tune", "run", "--", "sh", "-c", "exit 7"]), (Some(7), String::new()));
    let (code, stderr) = sweetspot(&["tune", "run", "--", "no-such-program"]);
    assert_eq!(code, Some(127));
    assert!(stderr.starts_with("sweetspot: cannot run no-such-program: "), "{stderr}");
}

#[test]
fn sigterm_reaches_the_command() {
    let tune = ["tune", "run", "--", "sleep", "1000"];
    let mut guardian = Command::new(env!("CARGO_BIN_EXE_sweetspot")).args(tune).spawn().unwrap();
    // The family: guardian, tuner and command.
    let family = || processes::family(guardian.id());
    wait_for("the command", || {
        let named = |pid: u32| processes::Process::read(pid).is_ok_and(|p| p.name == "sleep");
        family().into_iter().find(|pid| named(*pid))
    });
    Signal::TERMINATE.send(guardian.id());
    // 128 + 15: the command ended by SIGTERM.
    assert_eq!(guardian.wait().unwrap().code(), Some(143));
}

#[test]
fn the_first_of_two_requests_to_end_decides_the_exit_code() {
    for [first, second] in
        [[Signal::INTERRUPT, Signal::TERMINATE], [Signal::TERMINATE, Signal::INTERRUPT]]
    {
        let own = std::process::id().to_string();
        let mut tuner = Command::new(env!("CARGO_BIN_EXE_sweetspot"))
            .args(["tune", "attach", "--via", "pidfd", &own])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(tuner.stderr.take().unwrap()).lines();
        let begun = lines.next().unwrap().unwrap();
        assert!(begun.contains("watching process"), "{begun}");
        first.send(tuner.id());
        second.send(tuner.id());
        lines.for_each(drop);
        assert_eq!(tuner.wait().unwrap().code(), Some(0));
    }
}

/// A PID namespace may hide the kernel's threads.
#[test]
fn a_kernel_thread_has_no_connections() {
    let Ok(thread) = processes::Process::read(2) else { return };
    if !thread.is_kernel {
        return;
    }
    let (code, stderr) = sweetspot(&["tune", "attach", "2"]);
    let expected = format!("PID 2 ({}) is a kernel thread and has no connections", thread.name);
    assert!(code == Some(1) && stderr.contains(&expected), "{stderr}");
}

#[test]
fn invalid_arguments_are_rejected_in_one_line() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let scratch = tempfile::tempdir().unwrap();
    let policy = scratch.path().join("policy.toml");
    std::fs::write(&policy, "[[rule]]\ngaol = \"throughput\"\n").unwrap();
    let policy = policy.to_str().unwrap();
    let whole = scratch.path().join("whole.toml");
    std::fs::write(&whole, "[[rule]]\ngoal = \"throughput\"\n").unwrap();
    let whole = whole.to_str().unwrap();
    let own = std::process::id().to_string();
    for (arguments, expected) in [
        // Process IDs do not exceed the kernel's limit of 2^22.
        (&["tune", "attach", "8388608"][..], "there is no process 8388608"),
        (&["tune", "attach", &own, "--until", "8388608"], "there is no process 8388608"),
        (
            &["tune", "daemon", "--via", "pidfd", "--cgroup", "x", "--policy", whole],
            "--cgroup needs --via bpf",
        ),
        // No line says that metrics are served there.
        (
            &["tune", "daemon", "--via", "pidfd", "--policy", whole, "--metrics", &taken],
            "Address already in use; choose another port",
        ),
        (&["tune", "daemon", "--policy", "/no/such/file"], "/no/such/file: No such file"),
        (
            &["tune", "daemon", "--policy", "/dev/zero"],
            "/dev/zero: more than 16 MiB; name a policy",
        ),
        (&["tune", "daemon", "--policy", policy], "line 2: unknown key `gaol`"),
        (
            &["tune", "run", "--metrics", "0.0.0.0:1", "--", "true"],
            "metrics are for this host only",
        ),
        (&["tune", "attach", &own, "--until", "first"], "expected a process ID such as 4711"),
        (&["tune", "attach", "-1"], "expected a process ID such as 4711"),
        (
            &["tune", "run", "--events", "/", "--", "true"],
            "cannot write events to /: Is a directory; name a file",
        ),
        // Only a policy can leave connections alone; a command line has other goals.
        (
            &["tune", "run", "--goal", "leave", "--", "true"],
            "expected throughput (the path's full rate without a standing queue) or less-than-best-effort (only the capacity \
             that other traffic leaves);",
        ),
    ] {
        let (code, stderr) = sweetspot(arguments);
        assert!(code != Some(0) && stderr.contains(expected), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}
