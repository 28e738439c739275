//! Tests `sweetspot copy` through a real sshd, in its own network namespace.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use sweetspot_protocol::{Ticket, TicketHost, TicketProof, VERSION};
use sweetspot_testing::{assert_same_tree, ssh};

const SWEETSPOT: &str = env!("CARGO_BIN_EXE_sweetspot");
/// An ssh server and its client.
struct Ssh {
    scratch: tempfile::TempDir,
    configured: ssh::Ssh,
}

impl Ssh {
    /// An ssh server; `None`, with the reason printed, without an ssh server or namespaces.
    fn new() -> Option<Ssh> {
        if !Path::new(ssh::SSHD).exists() {
            sweetspot_testing::skipped("there is no sshd (apt-get install openssh-server)");
            return None;
        }
        let mut probe = Command::new("unshare");
        probe.args(["--net", "--mount", "--pid", "--fork", "--mount-proc", "true"]);
        if !probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            sweetspot_testing::skipped("no network namespace can be had here (run as root)");
            return None;
        }
        let scratch = tempfile::tempdir().unwrap();
        let configured = ssh::Ssh::configure(scratch.path()).unwrap();
        Some(Ssh { scratch, configured })
    }

    /// Runs `sweetspot copy` next to an sshd, in a namespace in which `before` has run.
    fn copy(&self, before: &str, arguments: &[&str]) -> Output {
        let chosen = arguments.contains(&"--remote-program");
        let program = if chosen { "" } else { "--remote-program \"$0\"" };
        let client = self.configured.client();
        let script = format!("{before} timeout 90 \"$0\" copy --ssh \"{client}\" {program} \"$@\"");
        let mut command = self.configured.beside_server(&script);
        command.arg(SWEETSPOT).args(arguments).output().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn far(&self, name: &str) -> String {
        format!("far:{}", self.path(name).display())
    }

    /// A small tree with every kind of entry.
    fn tree(&self) -> PathBuf {
        let tree = self.path("tree");
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::write(tree.join("a/one"), vec![1; 300_000]).unwrap();
        fs::write(tree.join("a/b/two"), "two").unwrap();
        fs::set_permissions(tree.join("a/b/two"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("a/one", tree.join("link")).unwrap();
        tree
    }
}

fn succeeded(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{output:?}");
    stderr
}

#[test]
fn a_remote_pattern_is_rejected_with_an_explanation() {
    let Some(ssh) = Ssh::new() else { return };
    ssh.tree();
    let copied = ssh.copy("", &[&ssh.far("tree/*"), "here"]);
    let stderr = String::from_utf8_lossy(&copied.stderr);
    assert_eq!(copied.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("patterns are not expanded at the far end"), "{stderr}");
}

#[test]
fn a_tree_is_copied_to_a_host_and_back() {
    let Some(ssh) = Ssh::new() else { return };
    let tree = ssh.tree();
    let arguments = [tree.to_str().unwrap(), &ssh.far("there"), "--verbose"];
    let destination = succeeded(&ssh.copy("", &arguments));
    assert!(destination.contains("connected to 127.0.0.1"), "{destination}");
    assert_same_tree(&tree, &ssh.path("there/tree"));
    let mode = fs::metadata(ssh.path("there/tree/a/b/two")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    // The same command has the same destination: nothing is nested, and nothing is sent again.
    assert!(succeeded(&ssh.copy("", &arguments)).contains("the receiver is up to date"));
    assert_eq!(fs::read_dir(ssh.path("there")).unwrap().count(), 1);
    assert_same_tree(&tree, &ssh.path("there/tree"));
    // With a trailing slash, a directory stands for its contents.
    let contents = ssh.far("there/tree/");
    succeeded(&ssh.copy("", &[&contents, &ssh.path("contents").display().to_string()]));
    assert_same_tree(&tree, &ssh.path("contents"));
    // Files that are already there are not sent again.
    let again = ssh.copy("", &[&contents, &ssh.path("contents").display().to_string(), "--json"]);
    let outcome: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(outcome["bytes"], 0, "{outcome}");
}

#[test]
fn a_copy_goes_through_a_jump_host() {
    let Some(ssh) = Ssh::new() else { return };
    let tree = ssh.tree();
    let output = ssh.copy("", &["-J", "gate", tree.to_str().unwrap(), &ssh.far("there")]);
    succeeded(&output);
    assert_same_tree(&tree, &ssh.path("there/tree"));
}

#[test]
fn the_far_end_can_connect_to_this_one() {
    let Some(ssh) = Ssh::new() else { return };
    let tree = ssh.tree();
    for (from, to, name) in [
        (tree.display().to_string(), ssh.far("there"), "there"),
        (ssh.far("there/tree"), ssh.path("back").display().to_string(), "back"),
    ] {
        let output = ssh.copy("", &[&from, &to, "--via", "reverse", "--verbose"]);
        let message = succeeded(&output);
        assert!(message.contains("the far end connected to this one"), "{message}");
        assert_same_tree(&tree, &ssh.path(name).join("tree"));
    }
}

#[test]
fn copy_does_not_wait_for_a_far_end_that_exited_after_connecting() {
    let scratch = tempfile::tempdir().unwrap();
    let (fake, source) = (scratch.path().join("ssh"), scratch.path().join("source"));
    let host = TicketHost::Address([127, 0, 0, 1].into());
    let ticket = Ticket { host, port: 9, fingerprint: [0; 32], proof: TicketProof::OwnKey };
    let listening = format!(
        r#"{{"is":"listening","version":{VERSION},"ticket":"{ticket}","addresses":[],"client":null}}"#
    );
    let script = format!(
        "read request; echo '{listening}'; read order; echo '{{\"is\":\"connected\"}}'; exit 3\n"
    );
    fs::write(&fake, script).unwrap();
    fs::write(&source, "content").unwrap();
    let mut command = Command::new("timeout");
    command.args(["60", SWEETSPOT, "copy", "--via", "reverse", "--ssh"]);
    command.arg(format!("sh {}", fake.display())).arg(&source).arg("far:there");
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("on far ended with code 3"), "{message}");
}

/// Waits this long.
fn pause(milliseconds: u64) {
    let time = sweetspot_units::Duration::from_millis(milliseconds);
    sweetspot_linux::clock::sleep_until(sweetspot_linux::clock::now() + time);
}

/// A program in place of ssh: it runs the far end on this host, and records its process ID.
fn local_ssh(scratch: &Path) -> String {
    let (program, processes) = (scratch.join("ssh"), scratch.join("processes"));
    let script = format!(
        "case \" $* \" in *' -G '*) exit 0;; esac\necho $$ >>{}\nfor command; do :; done\nexec $command\n",
        processes.display()
    );
    fs::write(&program, script).unwrap();
    format!("sh {}", program.display())
}

/// Copies `content` at 20 Mbit/s to a far end that `local_ssh` runs; `stop` acts once a part has arrived. Returns the exit status
/// and output.
fn stopped_copy(
    content: &[u8],
    retry_for: &str,
    stop: impl Fn(&Path),
) -> (tempfile::TempDir, Output) {
    let scratch = tempfile::tempdir().unwrap();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("there"));
    fs::write(&source, content).unwrap();
    fs::create_dir(&target).unwrap();
    let mut command = Command::new("timeout");
    command.args(["60", SWEETSPOT, "copy", "--bwlimit", "20Mbit/s", "--no-compress"]);
    command.args(["--retry-for", retry_for, "--remote-program", SWEETSPOT]);
    command.args(["--ssh", &local_ssh(scratch.path())]).arg(&source);
    command.arg(format!("far:{}", target.display()));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let part = || {
        let copied = fs::read_dir(&target).ok()?;
        copied.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).find(|n| *n > 0)
    };
    let limit = sweetspot_linux::clock::now() + sweetspot_units::Duration::from_secs(20);
    while part().is_none() && sweetspot_linux::clock::now() < limit {
        pause(5);
    }
    // A few rows of the series later, this end knows how much has been moved.
    pause(300);
    stop(scratch.path());
    (scratch, child.wait_with_output().unwrap())
}

fn kill_far_end(scratch: &Path) {
    let processes = fs::read_to_string(scratch.join("processes")).unwrap();
    let id = processes.lines().last().unwrap().parse().unwrap();
    sweetspot_linux::signals::Signal::KILL.send(id);
}

/// 5 MB take 2 s at 20 Mbit/s.
fn five_megabytes() -> Vec<u8> {
    (0..5_000_000u32).map(|n| (n / 1000) as u8).collect()
}

#[test]
fn a_killed_far_end_is_restarted_and_the_copy_completes() {
    let content = five_megabytes();
    let (scratch, output) = stopped_copy(&content, "15min", kill_far_end);
    let message = succeeded(&output);
    assert!(
        message.contains("the program at the far end has ended; restarting ssh in 1 s"),
        "{message}"
    );
    assert!(!message.contains("ticket"), "a copy has none: {message}");
    assert!(fs::read(scratch.path().join("there/source")).unwrap() == content);
}

#[test]
fn a_copy_that_gives_up_names_the_cause_and_the_kept_data() {
    let (_scratch, output) = stopped_copy(&five_megabytes(), "5s", |scratch| {
        // From now on, no new far end can start.
        fs::write(scratch.join("ssh"), "exit 255\n").unwrap();
        kill_far_end(scratch);
    });
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    let last = message.lines().last().unwrap();
    assert!(last.contains("ssh could not connect to far"), "{message}");
    assert!(last.contains("gave up 5 s after the last data, with "), "{message}");
    assert!(last.contains("received and kept") && !message.contains("ticket"), "{message}");
}

/// In place of a firewall: routes that block the far end's port.
const PORT_IS_CLOSED: &str = "ip rule add pref 9 lookup local && ip rule add pref 7 ipproto tcp dport 2300 prohibit && ip rule del pref 0 && ";

#[test]
fn a_copy_can_use_ssh_and_a_closed_port_triggers_another_route() {
    let Some(ssh) = Ssh::new() else { return };
    let tree = ssh.tree();
    let output = ssh.copy("", &[tree.to_str().unwrap(), &ssh.far("there"), "--via", "ssh"]);
    let message = succeeded(&output);
    assert!(message.contains("data goes through ssh, as requested"), "{message}");
    assert!(!message.contains("no connection"), "none was tried: {message}");
    assert_same_tree(&tree, &ssh.path("there/tree"));
    let back = ssh.path("back").display().to_string();
    succeeded(&ssh.copy("", &[&ssh.far("there/tree"), &back, "--via", "ssh"]));
    assert_same_tree(&tree, &ssh.path("back/tree"));
    // If the far end's port is closed, another route is tried; a direct connection only (--via direct) fails with an error.
    let closed = [tree.to_str().unwrap(), &ssh.far("next"), "--port", "2300", "--verbose"];
    let message = succeeded(&ssh.copy(PORT_IS_CLOSED, &closed));
    assert!(message.contains("the far end connected to this one"), "{message}");
    assert_same_tree(&tree, &ssh.path("next/tree"));
    let blocked = ssh.copy(
        PORT_IS_CLOSED,
        &[tree.to_str().unwrap(), &ssh.far("blocked"), "--via", "direct", "--port", "2300"],
    );
    assert!(!blocked.status.success());
    let message = String::from_utf8_lossy(&blocked.stderr);
    assert!(message.contains("firewall"), "{message}");
}

#[test]
fn each_error_of_the_far_end_takes_one_line() {
    let Some(ssh) = Ssh::new() else { return };
    let tree = ssh.tree();
    let source = tree.to_str().unwrap();
    let ended = |output: Output, code: i32, words: &[&str]| {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        let says = |line: &&str| words.iter().all(|word| line.contains(word));
        assert_eq!(stderr.lines().filter(says).count(), 1, "{words:?}: {stderr}");
    };
    let failed = |output: Output, words: &[&str]| ended(output, 1, words);
    let destination = ssh.far("there");
    let missing =
        ["--remote-program", "no-such-program", source, &destination, "--retry-for", "1ms"];
    failed(ssh.copy("", &missing), &["no no-such-program on far", "--remote-program"]);
    failed(
        copy_here(&["--ssh", "/no/such/ssh -v", source, "far:x"]),
        &["cannot run \"/no/such/ssh -v\"", "--ssh"],
    );
    let nowhere = ssh.far("no/such/directory/x");
    failed(
        ssh.copy("", &[source, &nowhere, "--retry-for", "1ms"]),
        &["no/such/directory/x: its parent", "no/such/directory does not exist"],
    );
    let nothing = ssh.far("nothing");
    let here = ssh.path("here").display().to_string();
    failed(ssh.copy("", &[&nothing, &here, "--retry-for", "1ms"]), &["nothing", "No such file"]);
    failed(ssh.copy("", &["/no/such/source", &destination]), &["/no/such/source", "No such file"]);
    ended(ssh.copy("", &["other:x", &destination]), 2, &["source and destination are both remote"]);
    ended(ssh.copy("", &["far:x", source, "."]), 2, &["on several hosts"]);
}

#[test]
fn a_noisy_or_silent_ssh_is_reported() {
    // `yes` prints its arguments repeatedly.
    let output = copy_here(&["--ssh", "yes", "/etc/hostname", "far:x", "--retry-for", "1ms"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("far keeps printing text that does not come from sweetspot"),
        "{stderr}"
    );
    // A timeout slightly above ten seconds.
    let mut command = Command::new("timeout");
    command.args(["11", SWEETSPOT, "copy", "--ssh", "sleep 60 #", "/etc/hostname", "far:x"]);
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("ssh to far has not started sweetspot there after 10 s"), "{stderr}");
}

#[test]
fn a_dry_run_writes_nothing() {
    let Some(ssh) = Ssh::new() else { return };
    let tree = ssh.tree();
    fs::create_dir(ssh.path("there")).unwrap();
    let output = ssh.copy("", &["-n", tree.to_str().unwrap(), &ssh.far("there")]);
    succeeded(&output);
    let message = String::from_utf8_lossy(&output.stdout);
    assert!(message.contains("would copy") && message.contains("two"), "{message}");
    assert_eq!(fs::read_dir(ssh.path("there")).unwrap().count(), 0);
}

#[test]
fn a_dry_run_lists_the_same_entries_in_both_directions() {
    let Some(ssh) = Ssh::new() else { return };
    let here = format!("{}/", ssh.tree().display());
    let new = ssh.path("new").display().to_string();
    let listed = |source: &str, target: &str| {
        let output = ssh.copy("", &["-n", source, target]);
        succeeded(&output);
        let mut lines: Vec<String> =
            String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    // The paths are relative to `tree/`, not to the directories in which the two ends run.
    let names = [
        "a (directory)",
        "a/b (directory)",
        "a/b/two (3 B)",
        "a/one (300 kB)",
        "link (symbolic link)",
    ];
    let expected = names.map(|name| format!("would copy {name}"));
    assert_eq!(listed(&here, &ssh.far("new")), expected);
    assert_eq!(listed(&ssh.far("tree/"), &new), expected);
}

#[test]
fn copy_without_a_host_is_local() {
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("f"), "content").unwrap();
    let mut command = Command::new(SWEETSPOT);
    command.arg("copy").arg(&source).arg(scratch.path().join("target"));
    let output = command.output().unwrap();
    succeeded(&output);
    assert_same_tree(&source, &scratch.path().join("target/source"));
}

/// Runs `sweetspot copy` on this host.
fn copy_here(arguments: &[&str]) -> Output {
    Command::new(SWEETSPOT).arg("copy").args(arguments).output().unwrap()
}

/// The names below `dir`, sorted; directories have a trailing slash.
fn names_below(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let slash = if path.symlink_metadata().unwrap().is_dir() { "/" } else { "" };
            names.push(format!("{}{slash}", path.strip_prefix(dir).unwrap().display()));
            if !slash.is_empty() {
                left.push(path);
            }
        }
    }
    names.sort();
    names
}

/// A source, and a target with the same files, older files, and others. The tree beside the target must stay unchanged.
fn mirror() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("target"));
    fs::create_dir_all(source.join("a")).unwrap();
    fs::write(source.join("a/kept"), "kept").unwrap();
    fs::create_dir_all(scratch.path().join("beside")).unwrap();
    fs::write(scratch.path().join("beside/safe"), "safe").unwrap();
    let copy = target.join("source");
    fs::create_dir_all(copy.join("old/deep")).unwrap();
    fs::create_dir_all(copy.join("a")).unwrap();
    for name in ["source/a/kept", "source/a/extra", "source/old/deep/f", "source/o.log", "other"] {
        fs::write(target.join(name), "old").unwrap();
    }
    symlink("../../beside", copy.join("link")).unwrap();
    (scratch, source, target)
}

#[test]
fn delete_removes_extra_entries_only_inside_copied_directories() {
    let (scratch, source, target) = mirror();
    let (from, to) = (source.to_str().unwrap(), target.to_str().unwrap());
    let before = names_below(&target);
    let rehearsed = copy_here(&["-n", "--delete", from, to]);
    succeeded(&rehearsed);
    let message = String::from_utf8_lossy(&rehearsed.stdout);
    for name in ["source/a/extra", "source/old/", "source/old/deep/f", "source/link"] {
        assert!(message.contains(&format!("would delete {name}\n")), "{name}: {message}");
    }
    assert!(!message.contains("would delete other"), "{message}");
    assert_eq!(names_below(&target), before, "a dry run deletes nothing");
    let message = succeeded(&copy_here(&["--delete", "--exclude", "*.log", from, to]));
    assert!(message.contains("5 deleted"), "{message}");
    let left = ["other", "source/", "source/a/", "source/a/kept", "source/o.log"];
    assert_eq!(names_below(&target), left, "excluded names stay, and names beside the source");
    assert_eq!(fs::read(scratch.path().join("beside/safe")).unwrap(), b"safe");
    // With a trailing slash, the target itself contains nothing else.
    succeeded(&copy_here(&["--delete", &format!("{from}/"), to]));
    assert_same_tree(&source, &target);
}

#[test]
fn nothing_is_deleted_if_any_source_could_not_be_copied() {
    let (scratch, source, target) = mirror();
    let socket = scratch.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let before = names_below(&target);
    let [source, socket, to] = [&source, &socket, &target].map(|path| path.to_str().unwrap());
    let output = copy_here(&["--delete", source, socket, to]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(23), "{message}");
    assert!(
        message.contains("nothing was deleted, because the sender left out some files"),
        "{message}"
    );
    assert_eq!(names_below(&target), before);
    for other in ["--keep-existing", "--files-from=list"] {
        let output = copy_here(&["--delete", other, "a", "b"]);
        assert_eq!(output.status.code(), Some(2), "{other} leaves too much unsaid for --delete");
    }
}

#[test]
fn delete_works_in_both_directions() {
    let Some(ssh) = Ssh::new() else { return };
    let tree = ssh.tree();
    let contents = format!("{}/", tree.display());
    succeeded(&ssh.copy("", &[&contents, &ssh.far("there")]));
    fs::write(ssh.path("there/a/extra"), "x").unwrap();
    let again = ssh.copy("", &["--delete", "--verbose", &contents, &ssh.far("there")]);
    let message = succeeded(&again);
    assert!(message.contains("deleted a/extra") && message.contains("1 deleted"), "{message}");
    assert_same_tree(&tree, &ssh.path("there"));
    fs::write(tree.join("more"), "x").unwrap();
    let back = ssh.copy("", &["--delete", &ssh.far("there/"), &contents]);
    assert!(succeeded(&back).contains("1 deleted"));
    assert_same_tree(&tree, &ssh.path("there"));
}

#[test]
fn only_root_can_preserve_owners() {
    use std::os::unix::fs::{MetadataExt, chown, lchown};
    let (scratch, source, _) = mirror();
    let target = scratch.path().join("new");
    if fs::metadata(&source).unwrap().uid() != 0 {
        let output = copy_here(&["--owners", source.to_str().unwrap(), target.to_str().unwrap()]);
        assert!(String::from_utf8_lossy(&output.stderr).contains("root"), "{output:?}");
        return;
    }
    symlink("a/kept", source.join("l")).unwrap();
    fs::write(source.join("big"), vec![7; 600_000]).unwrap();
    chown(source.join("a"), Some(4_000_001), Some(4_000_002)).unwrap();
    chown(source.join("a/kept"), Some(4_000_003), None).unwrap();
    chown(source.join("big"), Some(4_000_004), None).unwrap();
    lchown(source.join("l"), Some(4_000_005), None).unwrap();
    let owners = |top: &Path| {
        ["", "a", "a/kept", "big", "l"].map(|name| {
            let status = fs::symlink_metadata(top.join(name)).unwrap();
            (status.uid(), status.gid())
        })
    };
    let (from, to) = (source.to_str().unwrap(), target.to_str().unwrap());
    succeeded(&copy_here(&[&format!("{from}/"), to]));
    assert_eq!(owners(&target), [(0, 0); 5], "only on request");
    // Owners of existing files are updated, too.
    succeeded(&copy_here(&["--owners", &format!("{from}/"), to]));
    assert_eq!(owners(&target), owners(&source));
    let fresh = scratch.path().join("fresh");
    succeeded(&copy_here(&["--owners", from, fresh.to_str().unwrap()]));
    assert_eq!(owners(&fresh.join("source")), owners(&source));
}

#[test]
fn bwlimit_limits_the_rate() {
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("f");
    // 4 Mbit take half a second at 8 Mbit/s. Each connection sends one burst ahead of time: a write of 1500 B while the first
    // segments are held back, and two 64 KB segments of the loopback device from the kernel.
    fs::write(&source, b"0123456789abcdef".repeat(500_000 / 16)).unwrap();
    let target = scratch.path().join("g");
    for streams in ["1", "4"] {
        let start = sweetspot_linux::clock::now();
        let (from, to) = (source.to_str().unwrap(), target.to_str().unwrap());
        succeeded(&copy_here(&[
            "--bwlimit",
            "8mbit",
            "--checksum",
            "--streams",
            streams,
            from,
            to,
        ]));
        let took = sweetspot_linux::clock::now().since(start).as_secs_f64();
        let connections: f64 = streams.parse().unwrap();
        let least = (500_000.0 - connections * 2.0 * 65_536.0).max(250_000.0) * 8.0 / 8e6;
        assert!(took > least, "{streams} connections: {took} s");
        fs::remove_file(&target).unwrap();
    }
    // No connection could keep a limit below one packet of 1500 B per second.
    for too_slow in ["0", "0kbit/s", "11.9kbit/s"] {
        let output = copy_here(&["--bwlimit", too_slow, "a", "b"]);
        assert_eq!(output.status.code(), Some(2), "{too_slow}");
    }
}

/// A path of 8 Mbit/s on the loopback device of a new namespace.
const SLOW: &str =
    "ip link set lo up && tc qdisc add dev lo root tbf rate 8mbit burst 200kb latency 500ms && ";

#[test]
fn only_compressible_data_is_compressed_on_a_slow_path() {
    let Some(ssh) = Ssh::new() else { return };
    let (text, noise) = (ssh.path("text"), ssh.path("noise"));
    let line = |n: u32| format!("{n}: the quick brown fox jumps over the lazy dog\n");
    fs::write(&text, (0..150_000).map(line).collect::<String>()).unwrap();
    let mut bytes = vec![0; 2_000_000];
    fs::File::open("/dev/urandom")
        .and_then(|mut f| io::Read::read_exact(&mut f, &mut bytes))
        .unwrap();
    fs::write(&noise, &bytes).unwrap();
    let copy = |from: &Path, more: &[&str]| -> serde_json::Value {
        let destination = ssh.far("there");
        let arguments =
            [&[from.to_str().unwrap(), &destination, "--json", "--checksum"], more].concat();
        let output = ssh.copy(SLOW, &arguments);
        succeeded(&output);
        assert_eq!(fs::read(from).unwrap(), fs::read(ssh.path("there")).unwrap());
        fs::remove_file(ssh.path("there")).unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let size = fs::metadata(&text).unwrap().len();
    let outcome = copy(&text, &[]);
    assert_eq!(outcome["bytes"], size);
    assert!(outcome["saved_bytes"].as_u64().unwrap() > size / 3, "{outcome}");
    assert_eq!(copy(&noise, &[])["saved_bytes"], 0);
    assert_eq!(copy(&text, &["--no-compress", "--bwlimit", "100mbit"])["saved_bytes"], 0);
}
