use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use sweetspot_linux::live::LiveSocket;
use sweetspot_linux::processes::Process;
use sweetspot_linux::signals::Signal;
use sweetspot_units::Bytes;

use crate::download::{Server, clamp, client, wait_for};
use crate::emulated::{Emulated, SENDS, connection};
use crate::inside::{OwnCgroup, possible};

/// One BDP is 500 kB, more than the memory that the policy allows.
const PATH: &str = "rate=100Mbit/s rtt=40ms buffer=500kB";
const MEMORY: Bytes = Bytes::new(200_000);

/// Two programs called `wanted` and one called `other` download; a daemon tunes the first two.
struct Host {
    emulated: Emulated,
    wanted: [LiveSocket; 2],
    other: LiveSocket,
}

fn write_policy(scratch: &Path, dry_run: bool) {
    let policy = format!(
        "memory = \"200kB\"\nmetrics = \"127.0.0.1:9477\"\ndry_run = {dry_run}\n\
         [[rule]]\nprograms = [\"wanted\"]\ngoal = \"throughput\"\n"
    );
    // A rename is atomic, so the daemon never reads half a policy.
    fs::write(scratch.join("new-policy"), policy).unwrap();
    fs::rename(scratch.join("new-policy"), scratch.join("policy.toml")).unwrap();
}

/// Puts into `scratch` the policy, the daemon's messages (`messages`) and its metrics, read twice a second (`metrics`).
fn start(scratch: &Path, dry_run: bool) -> Option<Host> {
    write_policy(scratch, dry_run);
    let line = format!(
        "cd {}; for name in wanted other; do ln -s \"$(python3 -c 'import sys; print(sys.executable)')\" $name; done; \
         ./wanted -c \"$CLIENT\" {SENDS} & ./wanted -c \"$CLIENT\" {SENDS} & \
         ./other -c \"$CLIENT\" {SENDS} & \
         $SWEETSPOT tune daemon --via pidfd --policy policy.toml --events events.jsonl 2>messages & \
         while sleep 0.5; do \
           python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:9477/metrics').read().decode())\" \
             > new 2>/dev/null && mv new metrics; \
         done",
        scratch.display()
    );
    let emulated = Emulated::start(PATH, &line)?;
    let wanted = emulated.processes("wanted", 2);
    let other = emulated.processes("other", 1)[0];
    let host = Host {
        wanted: [wanted[0], wanted[1]].map(|pid| connection(pid, SENDS)),
        other: connection(other, SENDS),
        emulated,
    };
    // Waits until both wanted downloads are limited.
    wait_for("taken", || (events(scratch, "taken").len() == 2).then_some(()));
    Some(host)
}

fn all_events(scratch: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(scratch.join("events.jsonl")).unwrap_or_default();
    text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect()
}

fn events(scratch: &Path, kind: &str) -> Vec<serde_json::Value> {
    all_events(scratch).into_iter().filter(|event| event["event"] == kind).collect()
}

fn messages(scratch: &Path) -> Vec<String> {
    let text = fs::read_to_string(scratch.join("messages")).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn metric(scratch: &Path, name: &str) -> Option<f64> {
    let text = fs::read_to_string(scratch.join("metrics")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

/// Whether both clamps are half of the memory.
fn divided(wanted: &[LiveSocket; 2]) -> bool {
    let [a, b] = [&wanted[0], &wanted[1]].map(|socket| clamp(socket).as_f64());
    let half = MEMORY.as_f64() / 2.0;
    (a - half).abs() < 0.1 * half && (b - half).abs() < 0.1 * half
}

#[test]
fn a_daemon_tunes_by_policy_within_its_memory_and_leaves_no_limits() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(host) = start(scratch.path(), false) else { return };
    wait_for("fair shares of the memory", || divided(&host.wanted).then_some(()));
    wait_for("metrics", || {
        let limited = metric(scratch.path(), "sweetspot_connections_limited ")?;
        let window = metric(scratch.path(), "sweetspot_window_bytes ")?;
        (limited == 2.0 && (1.0..=MEMORY.as_f64() * 1.02).contains(&window)).then_some(())
    });
    // No rule covers this program, so it has the kernel's own clamp, which grows.
    wait_for("the kernel's own clamp", || (clamp(&host.other) > MEMORY).then_some(()));
    for event in events(scratch.path(), "taken") {
        assert_eq!(event["program"], "wanted");
    }
    Signal::TERMINATE.send(host.emulated.tuner()[0]);
    for socket in &host.wanted {
        wait_for("the end of the limit", || (clamp(socket) > MEMORY).then_some(()));
    }
    // The last event of each connection has no limit. On a busy machine its limit may have been lifted earlier.
    wait_for("lifted", || {
        let mut last = HashMap::new();
        let all = all_events(scratch.path());
        // The daemon reports the third program's connection only as one that it leaves alone.
        for event in all.iter().filter(|event| event["program"] == "wanted") {
            last.insert(event["local"].to_string(), event["to_bytes"].is_null());
        }
        (last.len() == 2 && last.values().all(|unlimited| *unlimited)).then_some(())
    });
}

#[test]
fn a_killed_daemon_leaves_no_limits() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(host) = start(scratch.path(), false) else { return };
    wait_for("fair shares of the memory", || divided(&host.wanted).then_some(()));
    Signal::KILL.send(host.emulated.tuner()[1]);
    for socket in &host.wanted {
        wait_for("the end of the limit", || (clamp(socket) > MEMORY).then_some(()));
    }
}

#[test]
fn a_dry_run_of_a_daemon_changes_no_socket() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(host) = start(scratch.path(), true) else { return };
    // The log has the limits that a real run would set; the sockets have none.
    wait_for("limits in the log", || {
        let all = all_events(scratch.path());
        let limited = all.iter().filter(|event| !event["to_bytes"].is_null());
        let limited: HashSet<_> = limited.map(|event| event["local"].to_string()).collect();
        (limited.len() == 2).then_some(())
    });
    for socket in &host.wanted {
        let is_own = || clamp(socket) > MEMORY / 2 && !divided(&host.wanted);
        wait_for("the kernel's own clamp", || is_own().then_some(()));
    }
    let daemon = host.emulated.tuner()[0];
    Signal::TERMINATE.send(daemon);
    wait_for("the daemon's end", || Process::read(daemon).is_err().then_some(()));
    assert!(events(scratch.path(), "lifted").is_empty());
    assert!(all_events(scratch.path()).iter().all(|event| event["dry_run"] == true));
    let messages = messages(scratch.path());
    let beginning = ": dry run of policy.toml (1 rule) via pidfd; nothing is changed; metrics at http://127.0.0.1:9477/metrics";
    assert!(messages[0].ends_with(beginning), "{messages:#?}");
    assert!(messages[1..].iter().all(|line| line.contains(": dry run: ")), "{messages:#?}");
}

#[test]
fn a_policy_that_ends_the_dry_run_ends_the_dry_run_labels() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(host) = start(scratch.path(), true) else { return };
    write_policy(scratch.path(), false);
    wait_for("fair shares of the memory", || divided(&host.wanted).then_some(()));
    let is_applied = |event: &serde_json::Value| event["dry_run"].is_null();
    wait_for("an action", || all_events(scratch.path()).iter().any(is_applied).then_some(()));
    let messages = messages(scratch.path());
    let end = messages.iter().position(|line| line.contains("the dry run has ended")).unwrap();
    let is_marked = |line: &String| line.contains(": dry run: ");
    // Events that waited for the effect of their changes come after the message about the policy.
    let news: Vec<_> = messages[2..end].iter().filter(|line| !is_marked(line)).collect();
    let [changed] = news[..] else { panic!("{messages:#?}") };
    assert!(changed.contains("the changed policy is in force, with 1 rule"), "{messages:#?}");
    assert!(!messages[end..].iter().any(is_marked), "{messages:#?}");
    let events = all_events(scratch.path());
    assert!(events.iter().map(is_applied).is_sorted(), "{events:#?}");
}

/// A daemon limits a download, and a second tuner starts to limit it, too.
#[test]
fn a_second_tuner_of_a_connection_reports_the_first_once() {
    let scratch = tempfile::tempdir().unwrap();
    write_policy(scratch.path(), false);
    let line = format!(
        "cd {}; export RUNTIME_DIRECTORY=$PWD; ln -s \"$(python3 -c 'import sys; print(sys.executable)')\" wanted; \
         $SWEETSPOT tune daemon --via pidfd --policy policy.toml --events events.jsonl --quiet & \
         ./wanted -c \"$CLIENT\" {SENDS} & client=$!; \
         while ! grep -q taken events.jsonl; do sleep 0.1; done; \
         $SWEETSPOT tune attach --via pidfd $client 2>messages",
        scratch.path().display(),
    );
    let Some(_emulated) = Emulated::start(PATH, &line) else { return };
    let log = || fs::read_to_string(scratch.path().join("messages")).unwrap_or_default();
    wait_for("a second limit", || log().contains("limited, window").then_some(()));
    assert_eq!(log().matches("another tuner also tunes wanted[").count(), 1, "{}", log());
}

/// A tuner via pidfd limits a download; one via bpf begins to limit it, too.
#[test]
fn a_tuner_inside_the_kernel_names_one_outside() {
    if !possible() {
        return;
    }
    let (scratch, cgroup, server) =
        (tempfile::tempdir().unwrap(), OwnCgroup::make(), Server::start());
    let [python, words @ ..] = client(server.port);
    let mut download = Command::new(python);
    download.args(words).stdout(Stdio::null());
    cgroup.0.enter_on_exec(&mut download).unwrap();
    let mut download = download.spawn().unwrap();
    let attach = |via: &str| {
        let mut tuner = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
        tuner.args(["tune", "attach", "--via", via]).arg(download.id().to_string());
        tuner.env("RUNTIME_DIRECTORY", scratch.path());
        tuner.stderr(fs::File::create(scratch.path().join(via)).unwrap()).spawn().unwrap()
    };
    let says = |via: &str, words: &str| {
        let log = || fs::read_to_string(scratch.path().join(via)).unwrap();
        wait_for(words, || log().contains(words).then_some(()));
    };
    let first = attach("pidfd");
    says("pidfd", "limited, window");
    let second = attach("bpf");
    says("bpf", "another tuner also tunes ");
    for mut tuner in [second, first] {
        Signal::TERMINATE.send(tuner.id());
        assert!(tuner.wait().unwrap().success());
    }
    server.stop();
    download.wait().unwrap();
}
