//! `sweetspot tune --via bpf`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use sweetspot_kernel::probe;
use sweetspot_linux::cgroup::Cgroup;
use sweetspot_linux::clock;
use sweetspot_linux::live::LiveSocket;
use sweetspot_linux::signals::Signal;
use sweetspot_linux::tcp::{Info, options};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::download::{Server, Tuned, clamp, client, is_lifted, wait_for};
use crate::emulated::{Emulated, RECEIVES, SENDS, connection};

const VIA: [&str; 2] = ["--via", "bpf"];

/// Whether this host meets all requirements; if not, prints why.
pub fn possible() -> bool {
    // If a newer kernel's verifier rejects a program, that is a bug, so the test must fail.
    let lacking = probe::obstacle();
    lacking.iter().for_each(sweetspot_testing::skipped);
    lacking.is_none()
}

/// Runs sweetspot; returns its exit code, standard output and standard error.
pub fn sweetspot(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_sweetspot")).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_download_is_tuned_via_bpf_and_arrives_whole() {
    if !possible() {
        return;
    }
    let (server, scratch) = (Server::start(), tempfile::tempdir().unwrap());
    let tuned = Tuned::start(server.port, scratch.path(), &VIA);
    tuned.wait_for_event("taken");
    let owner = format!("\"pid\":{}", tuned.connection().process().pid());
    assert!(tuned.log().contains(&owner), "{}", tuned.log());
    server.stop();
    let (printed, code) = tuned.finish();
    assert_eq!(code, Some(0));
    assert!(printed.parse::<u64>().unwrap() > 60_000, "{printed}");
}

#[test]
fn tune_run_returns_its_commands_exit_code_and_removes_the_cgroup() {
    if !possible() {
        return;
    }
    let run = |script: &str| sweetspot(&["tune", "run", "--via", "bpf", "--", "sh", "-c", script]);
    let (code, cgroup, stderr) = run("grep ^0:: /proc/self/cgroup; exit 7");
    assert_eq!((code, stderr.as_str()), (Some(7), ""));
    let path = cgroup.strip_prefix("0::/").unwrap();
    assert!(path.contains("sweetspot-"), "{path}");
    let mount = Cgroup::mount_point().unwrap();
    assert!(!mount.join(path).exists());
    let missing = sweetspot(&["tune", "run", "--via", "bpf", "--", "no-such-program"]);
    assert_eq!(missing.0, Some(127));
    assert!(missing.2.starts_with("sweetspot: cannot run no-such-program: "), "{}", missing.2);
}

#[test]
fn a_tuner_without_its_guardian_ends_with_its_command_and_cgroup() {
    if !possible() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let go = scratch.path().join("go");
    let script = format!("until [ -e '{}' ]; do sleep .1; done", go.display());
    let here = Cgroup::of(std::process::id()).unwrap();
    // Runs several, because the result once depended on the thread that received the signal of the command's end.
    let mut guardians: Vec<Child> = (0..6)
        .map(|_| {
            let mut run = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
            run.args(["tune", "run", "--via", "bpf", "--metrics", "127.0.0.1:0", "--"]);
            run.args(["sh", "-c", &script]).spawn().unwrap()
        })
        .collect();
    let cgroups: Vec<PathBuf> = guardians
        .iter()
        .map(|guardian| here.path().join(format!("sweetspot-{}", guardian.id())))
        .collect();
    for cgroup in &cgroups {
        let command = || std::fs::read(cgroup.join("cgroup.procs")).is_ok_and(|it| !it.is_empty());
        wait_for("the command", || command().then_some(()));
    }
    for guardian in &mut guardians {
        guardian.kill().unwrap();
        guardian.wait().unwrap();
    }
    std::fs::write(go, "").unwrap();
    wait_for("the end", || cgroups.iter().all(|cgroup| !cgroup.exists()).then_some(()));
}

#[test]
fn a_cgroup_is_removed_while_a_process_in_it_exits() {
    if !possible() {
        return;
    }
    let cgroup = OwnCgroup::make();
    // Freeing its memory takes the kernel some milliseconds. Until then the process cannot be moved.
    let mut large = Command::new("python3");
    large.args(["-c", "x = b'1' * (400 << 20); print(flush=True); input()"]);
    large.stdin(Stdio::piped()).stdout(Stdio::piped());
    cgroup.0.enter_on_exec(&mut large).unwrap();
    let mut large = large.spawn().unwrap();
    large.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    large.kill().unwrap();
    clock::sleep_until(clock::now() + Duration::from_millis(5));
    let removed = cgroup.0.dissolve();
    large.wait().unwrap();
    removed.unwrap();
    assert!(!cgroup.0.exists());
}

#[test]
fn removing_a_cgroup_tree_moves_its_processes_to_the_parent() {
    if !possible() {
        return;
    }
    let cgroup = OwnCgroup::make();
    let below = cgroup.0.create("of").unwrap().create("its own").unwrap();
    let mut patient = Command::new("cat");
    patient.stdin(Stdio::piped());
    below.enter_on_exec(&mut patient).unwrap();
    let mut patient = patient.spawn().unwrap();
    cgroup.0.dissolve().unwrap();
    assert!(!cgroup.0.exists());
    assert_eq!(Cgroup::path_of(patient.id()), Cgroup::path_of(std::process::id()));
    assert!(patient.try_wait().unwrap().is_none());
    patient.kill().unwrap();
    patient.wait().unwrap();
}

/// A download over a path with a BDP of 500 kB, and a daemon with 200 kB of memory that tunes it. Both are in one cgroup.
pub struct Limited {
    // Dropped first, because its processes must end before the cgroup is removed.
    emulated: Emulated,
    pub socket: LiveSocket,
    _cgroup: OwnCgroup,
}

/// A cgroup that is removed when it is dropped.
pub struct OwnCgroup(pub Cgroup);

impl OwnCgroup {
    pub fn make() -> OwnCgroup {
        let name = format!("test-of-sweetspot-{}", clock::now().as_nanos());
        OwnCgroup(Cgroup::of(std::process::id()).unwrap().create(&name).unwrap())
    }
}

impl Drop for OwnCgroup {
    fn drop(&mut self) {
        let _ = self.0.dissolve();
    }
}

const MEMORY: Bytes = Bytes::new(200_000);

pub fn limited(scratch: &Path) -> Option<Limited> {
    if !possible() {
        return None;
    }
    let policy = "memory = \"200kB\"\n[[rule]]\ngoal = \"throughput\"\n";
    std::fs::write(scratch.join("policy.toml"), policy).unwrap();
    let cgroup = OwnCgroup::make();
    let line = format!(
        "cd {}; echo 0 > {path}/cgroup.procs; \
         $SWEETSPOT tune daemon --via bpf --cgroup {path} --policy policy.toml --quiet \
           --events events.jsonl 2> said & \
         sleep 1; python3 -c \"$CLIENT\" {SENDS} & wait",
        scratch.display(),
        path = cgroup.0.path().display()
    );
    let emulated = Emulated::start("rate=100Mbit/s rtt=40ms buffer=500kB", &line)?;
    let client = emulated.client();
    let socket = connection(client, SENDS);
    // Before the tuner limits it, the kernel's own clamp is below `MEMORY`, too.
    let is_taken = || {
        let events_text = std::fs::read_to_string(scratch.join("events.jsonl")).unwrap_or_default();
        events_text.contains("\"event\":\"taken\"")
    };
    wait_for("the limit", || (is_taken() && clamp(&socket) <= MEMORY).then_some(()));
    Some(Limited { emulated, socket, _cgroup: cgroup })
}

impl Limited {
    /// Waits until the limit is lifted as a result of `end`.
    fn is_lifted_by(&self, end: impl FnOnce()) {
        end();
        wait_for("the end of the limit", || (clamp(&self.socket) > MEMORY).then_some(()));
    }
}

#[test]
fn limits_are_lifted_when_the_daemon_gets_sigterm() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(host) = limited(scratch.path()) else { return };
    let guardian = host.emulated.tuner()[0];
    host.is_lifted_by(|| Signal::TERMINATE.send(guardian));
}

#[test]
fn limits_are_lifted_when_the_tuner_is_killed() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(host) = limited(scratch.path()) else { return };
    let tuner = host.emulated.tuner()[1];
    host.is_lifted_by(|| Signal::KILL.send(tuner));
}

#[test]
fn limits_are_lifted_when_the_guardian_is_killed() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(host) = limited(scratch.path()) else { return };
    let guardian = host.emulated.tuner()[0];
    host.is_lifted_by(|| Signal::KILL.send(guardian));
}

#[test]
fn limits_are_lifted_when_everything_is_killed_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(host) = limited(scratch.path()) else { return };
    let all = host.emulated.tuner();
    host.is_lifted_by(|| all.into_iter().for_each(|pid| Signal::KILL.send(pid)));
}

/// Starts a daemon with a policy that names a congestion control; returns its messages.
fn congestion_messages(name: &str, options: &[&str]) -> String {
    let (scratch, cgroup) = (tempfile::tempdir().unwrap(), OwnCgroup::make());
    let rule = format!("[[rule]]\ngoal = \"throughput\"\ncongestion = \"{name}\"\n");
    let daemon = daemon_with(&rule, &cgroup, scratch.path(), options);
    let log = scratch.path().join("events.jsonl");
    wait_for("the daemon", || log.exists().then_some(()));
    Signal::TERMINATE.send(daemon.id());
    let (code, printed) = ended(daemon);
    assert_eq!(code, Some(0), "{printed}");
    printed
}

#[test]
fn a_congestion_control_without_effect_is_reported_with_the_reason() {
    if !possible() {
        return;
    }
    let printed = congestion_messages("reno", &[]);
    assert!(
        printed.contains("congestion = \"reno\" has no effect: ") && printed.contains("--send"),
        "{printed}"
    );
    let printed = congestion_messages("no-such", &["--send"]);
    assert!(
        printed.contains("\"no-such\" has no effect: this kernel does not offer it"),
        "{printed}"
    );
    let printed = congestion_messages("reno", &["--send"]);
    // Only the lines with which each daemon begins and ends.
    assert!(printed.contains(" (1 rule) via bpf; ") && printed.lines().count() == 2, "{printed}");
    assert!(!printed.contains("no effect"), "{printed}");
}

#[test]
fn an_upload_uses_the_policys_congestion_control_until_all_is_killed() {
    if !possible() {
        return;
    }
    let host = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    let other = if host.trim() == "reno" { "cubic" } else { "reno" };
    let (scratch, cgroup) = (tempfile::tempdir().unwrap(), OwnCgroup::make());
    let policy = format!("[[rule]]\ngoal = \"throughput\"\ncongestion = \"{other}\"\n");
    std::fs::write(scratch.path().join("policy.toml"), policy).unwrap();
    let line = format!(
        "cd {}; echo 0 > {path}/cgroup.procs; \
         $SWEETSPOT tune daemon --via bpf --send --cgroup {path} --policy policy.toml --quiet \
           --events events.jsonl & \
         sleep 1; python3 -c \"$CLIENT\" {RECEIVES} host & wait",
        scratch.path().display(),
        path = cgroup.0.path().display()
    );
    let path = "rate=50Mbit/s rtt=20ms buffer=250kB";
    let Some(emulated) = Emulated::start(path, &line) else { return };
    let socket = connection(emulated.client(), RECEIVES);
    let congestion = || socket.with(|fd| options::congestion(fd)).unwrap().unwrap();
    wait_for("the policy's choice", || (congestion() == other).then_some(()));
    wait_for("its event", || {
        let events_text = std::fs::read_to_string(scratch.path().join("events.jsonl")).ok()?;
        let mut events = events_text.lines().filter_map(|l| serde_json::from_str(l).ok());
        let is_it = |e: &serde_json::Value| e["event"] == "switched" && e["congestion_to"] == other;
        events.any(|event| is_it(&event)).then_some(())
    });
    emulated.tuner().into_iter().for_each(|pid| Signal::KILL.send(pid));
    wait_for("the host's choice", || (congestion() == host.trim()).then_some(()));
}

#[test]
fn a_changed_policy_takes_effect_unless_it_is_invalid() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(host) = limited(scratch.path()) else { return };
    // Replaces the file at once: an empty file is a policy, too.
    let change = |policy: &str| {
        let (draft, policy_file) =
            (scratch.path().join("draft"), scratch.path().join("policy.toml"));
        std::fs::write(&draft, policy).unwrap();
        std::fs::rename(draft, policy_file).unwrap();
    };
    let printed = || std::fs::read_to_string(scratch.path().join("said")).unwrap();
    change("memory = 7\n");
    wait_for("an error", || printed().contains("the previous policy stays in force").then_some(()));
    // Until the tuner sees it, the kernel raises the clamp whenever it enlarges the buffer.
    wait_for("the same limit", || (clamp(&host.socket) <= MEMORY).then_some(()));
    std::fs::remove_file(scratch.path().join("policy.toml")).unwrap();
    wait_for("an error", || printed().contains("policy.toml is gone; the previous").then_some(()));
    change("[[rule]]\ngoal = \"leave\"\n");
    wait_for("the end of the limit", || (clamp(&host.socket) > MEMORY).then_some(()));
    change("memory = 8\n");
    let is_said_again = || printed().matches("the previous policy stays in force").count() == 3;
    wait_for("the same error", || is_said_again().then_some(()));
    assert!(is_lifted(&host.socket, MEMORY));
    change("memory = \"200kB\"\n[[rule]]\ngoal = \"throughput\"\n");
    wait_for("the limit again", || (clamp(&host.socket) <= MEMORY).then_some(()));
}

/// Starts a daemon on a cgroup of its own, with its standard error captured.
pub fn daemon_on(cgroup: &OwnCgroup, scratch: &Path, options: &[&str]) -> Child {
    daemon_with("[[rule]]\ngoal = \"throughput\"\n", cgroup, scratch, options)
}

fn daemon_with(rules: &str, cgroup: &OwnCgroup, scratch: &Path, options: &[&str]) -> Child {
    let policy = scratch.join("policy.toml");
    std::fs::write(&policy, rules).unwrap();
    Command::new(env!("CARGO_BIN_EXE_sweetspot"))
        .args(["tune", "daemon", "--via", "bpf", "--policy"])
        .arg(&policy)
        .arg("--events")
        .arg(scratch.join("events.jsonl"))
        .arg("--cgroup")
        .arg(cgroup.0.path())
        .args(options)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

pub fn ended(daemon: Child) -> (Option<i32>, String) {
    let output = daemon.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

#[test]
fn a_second_daemon_and_a_vanished_cgroup_get_one_line_each() {
    if !possible() {
        return;
    }
    let (scratch, cgroup) = (tempfile::tempdir().unwrap(), OwnCgroup::make());
    let first = daemon_on(&cgroup, scratch.path(), &[]);
    let is_at_work = || {
        let (code, printed) = ended(daemon_on(&cgroup, scratch.path(), &[]));
        assert_eq!(code, Some(1), "{printed}");
        assert_eq!(printed.lines().count(), 1, "{printed}");
        assert!(printed.contains("already tunes the connections"), "{printed}");
    };
    // The daemon opens its log after its programs are attached and have a lease.
    wait_for("the first daemon", || scratch.path().join("events.jsonl").exists().then_some(()));
    is_at_work();
    // The first daemon sees a command in its cgroup. So `tune run` leaves the command untuned, and runs it.
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    command.args(["tune", "run", "--", "echo", "it runs"]);
    cgroup.0.enter_on_exec(&mut command).unwrap();
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), &output.stdout[..]),
        (Some(0), &b"it runs\n"[..]),
        "{printed}"
    );
    assert!(
        printed.lines().count() == 1 && printed.contains("decides about this command"),
        "{printed}"
    );
    cgroup.0.dissolve().unwrap();
    let (code, printed) = ended(first);
    // The daemon's first line precedes the error.
    assert!(printed.contains(" (1 rule) via bpf; "), "{printed}");
    // The second daemon may have written its policy over the first daemon's.
    let news: Vec<&str> =
        printed.lines().skip(1).filter(|line| !line.contains("policy is in force")).collect();
    assert_eq!((code, news.len()), (Some(1), 1), "{printed}");
    assert!(news[0].contains("is gone, and its connections with it"), "{printed}");
}

#[test]
fn a_download_that_started_before_the_tuner_is_tuned() {
    if !possible() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let events = scratch.path().join("events.jsonl");
    let cgroup = OwnCgroup::make();
    let server = Server::start();
    let [python, words @ ..] = client(server.port);
    let mut download = Command::new(python);
    download.args(words).stdout(Stdio::null());
    cgroup.0.enter_on_exec(&mut download).unwrap();
    let mut download = download.spawn().unwrap();
    let socket = connection(download.id(), server.port);
    wait_for("data", || {
        let info = socket.with(|fd| Info::read(fd)).ok()?.ok()?;
        (info.bytes_received > Bytes::new(200_000)).then_some(())
    });
    let mut tune = Command::new(env!("CARGO_BIN_EXE_sweetspot"))
        .args(["tune", "attach", "--via", "bpf", "--quiet", "--events"])
        .arg(&events)
        .arg(download.id().to_string())
        .spawn()
        .unwrap();
    wait_for("taken", || {
        let log = std::fs::read_to_string(&events).ok()?;
        log.contains("\"event\":\"taken\"").then_some(())
    });
    Signal::TERMINATE.send(tune.id());
    assert!(tune.wait().unwrap().success());
    server.stop();
    assert!(download.wait().unwrap().success());
}

#[test]
fn an_upload_is_paced_via_bpf_until_the_tuner_is_killed() {
    if !possible() {
        return;
    }
    // One BDP is 125 kB; the buffer holds two BDPs.
    let line = format!(
        "$SWEETSPOT tune run --via bpf --send --quiet -- python3 -c \"$CLIENT\" {RECEIVES}"
    );
    let path = "rate=50Mbit/s rtt=20ms buffer=250kB";
    let Some(emulated) = Emulated::start(path, &line) else { return };
    let socket = connection(emulated.client(), RECEIVES);
    let pace = || socket.with(|fd| options::max_pacing_rate(fd)).unwrap().unwrap();
    // 1448 of 1500 bytes are payload: 48.3 Mbit/s. A busy machine may show a higher rate at first.
    let held = Rate::from_mbit_per_second(44)..Rate::from_mbit_per_second(49);
    wait_for("the path's rate", || pace().filter(|pace| held.contains(pace)));
    // Without a tuner, two BDPs (40 ms) would stand in the buffer.
    wait_for("an empty buffer", || {
        let info = socket.with(|fd| Info::read(fd)).unwrap().unwrap();
        (info.rtt < Duration::from_millis(26)).then_some(())
    });
    Signal::KILL.send(emulated.tuner()[1]);
    wait_for("the end of pacing", || pace().is_none().then_some(()));
}

/// The data that a path with a BDP of 500 kB and a buffer of 1 MB holds.
const PATH_AND_BUFFER: Bytes = Bytes::new(1_500_000);

#[test]
fn a_second_download_reuses_the_window_of_the_first_without_loss() {
    if !possible() {
        return;
    }
    let (scratch, cgroup) = (tempfile::tempdir().unwrap(), OwnCgroup::make());
    let dir = scratch.path();
    std::fs::write(dir.join("policy.toml"), "[[rule]]\ngoal = \"throughput\"\n").unwrap();
    let line = format!(
        "cd {}; echo 0 > {path}/cgroup.procs; \
         $SWEETSPOT tune daemon --via bpf --cgroup {path} --policy policy.toml --quiet \
           --events events.jsonl & \
         sleep 1; python3 -c \"$CLIENT\" {SENDS} & first=$!; \
         until grep -q '\"event\":\"held\"' events.jsonl; do sleep 0.1; done; kill $first; \
         until grep -q '\"event\":\"gone\"' events.jsonl; do sleep 0.1; done; \
         touch second; python3 -c \"$CLIENT\" {SENDS}",
        dir.display(),
        path = cgroup.0.path().display()
    );
    let Some(emulated) = Emulated::start("rate=100Mbit/s rtt=40ms buffer=1MB", &line) else {
        return;
    };
    wait_for("the second download", || dir.join("second").exists().then_some(()));
    let socket = connection(emulated.client(), SENDS);
    // By then, slow start would have filled path and buffer twice.
    let info = wait_for("slow start's end", || {
        let received = socket.with(|fd| Info::read(fd)).unwrap().unwrap();
        (received.bytes_received > PATH_AND_BUFFER * 2).then_some(received)
    });
    let log = std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
    let events: Vec<serde_json::Value> =
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let first = &events[0]["cookie"];
    let held = events.iter().rfind(|e| e["cookie"] == *first && e["event"] == "held");
    let held = held.and_then(|event| event["to_bytes"].as_u64()).expect("a held window");
    let second = || events.iter().filter(|event| event["cookie"] != *first);
    let windows: Vec<u64> = second().filter_map(|event| event["to_bytes"].as_u64()).collect();
    // The windows may differ by a segment or a step of the window scale.
    let has_it = windows.iter().any(|window| (held * 9 / 10..=held * 11 / 10).contains(window));
    assert!(has_it, "{held} and then {windows:?}");
    // After a pause of the machine, the controller may open the window earlier.
    let may_overflow = windows.iter().any(|window| *window > PATH_AND_BUFFER.get());
    assert!(may_overflow || info.rcv_ooopack == Some(0), "{info:?}");
}

/// Uploads by processes in a cgroup with a daemon, over paths to the same address. The second upload starts after the first has
/// ended.
struct Uploads {
    scratch: tempfile::TempDir,
    cgroup: OwnCgroup,
    daemon: Child,
}

impl Uploads {
    fn start() -> Uploads {
        let (scratch, cgroup) = (tempfile::tempdir().unwrap(), OwnCgroup::make());
        let daemon = daemon_on(&cgroup, scratch.path(), &["--send", "--quiet"]);
        let uploads = Uploads { scratch, cgroup, daemon };
        wait_for("the daemon", || {
            uploads.scratch.path().join("events.jsonl").exists().then_some(())
        });
        uploads
    }

    /// Starts an upload over `path`.
    fn over(&self, path: &str) -> Option<Emulated> {
        let cgroup = self.cgroup.0.path().display();
        let line = format!(
            "echo 0 > {cgroup}/cgroup.procs; python3 -c \"$CLIENT\" {RECEIVES} & wait; sleep 60"
        );
        Emulated::start(path, &line)
    }

    /// Waits until the log contains `words`.
    fn wait_for(&self, words: &str) {
        wait_for(words, || {
            let events = std::fs::read_to_string(self.scratch.path().join("events.jsonl")).ok()?;
            events.contains(words).then_some(())
        });
    }

    /// Runs an upload over `path` until it has been held and has ended.
    fn first_over(&self, path: &str) -> Option<()> {
        let first = self.over(path)?;
        self.wait_for("\"event\":\"held\"");
        // The data already written still arrive and are acknowledged.
        Signal::KILL.send(first.client());
        self.wait_for("\"event\":\"gone\"");
        Some(())
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        Signal::TERMINATE.send(self.daemon.id());
        let _ = self.daemon.wait();
    }
}

/// One BDP is 625 kB; the buffer holds a quarter of it.
const QUARTER: &str = "rate=50Mbit/s rtt=100ms buffer=156kB";

#[test]
fn a_second_upload_reuses_the_pacing_rate_of_the_first_without_loss() {
    if !possible() {
        return;
    }
    let uploads = Uploads::start();
    let Some(()) = uploads.first_over(QUARTER) else { return };
    let Some(second) = uploads.over(QUARTER) else { return };
    let socket = connection(second.client(), RECEIVES);
    uploads.wait_for("the path is remembered");
    // A trial raises the rate by a fifth. 1448 of 1500 bytes are payload: 48.3 Mbit/s.
    let max = Rate::from_mbit_per_second(59);
    // By then, slow start would have filled path and buffer (781 kB) twice.
    let info = wait_for("slow start's end", || {
        let pace = socket.with(|fd| options::max_pacing_rate(fd)).unwrap().unwrap();
        assert!(pace.is_some_and(|pace| pace < max), "{pace:?}");
        let info = socket.with(|fd| Info::read(fd)).unwrap().unwrap();
        (info.bytes_acked > Bytes::new(1_562_000)).then_some(info)
    });
    assert_eq!(info.total_retrans, 0);
}

#[test]
fn an_upload_finds_the_rate_of_a_remembered_path_that_got_slower() {
    if !possible() {
        return;
    }
    let uploads = Uploads::start();
    let Some(()) = uploads.first_over(QUARTER) else { return };
    // Half of the first path's window is 312 kB, more than the second path (31 kB) and its buffer hold.
    let Some(second) = uploads.over("rate=2.5Mbit/s rtt=100ms buffer=156kB") else { return };
    let socket = connection(second.client(), RECEIVES);
    uploads.wait_for("the path is remembered");
    let slower = Rate::from_mbit_per_second(2)..Rate::from_mbit_per_second(3);
    wait_for("the pacing rate of the slower path", || {
        let pace = socket.with(|fd| options::max_pacing_rate(fd)).unwrap().unwrap();
        pace.filter(|pace| slower.contains(pace))
    });
}
