//! `sweetspot copy` through a real sshd, in a network namespace of its own.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use sweetspot_testing::{assert_same_tree, ssh};

const SWEETSPOT: &str = env!("CARGO_BIN_EXE_sweetspot");
/// An ssh server and its client.
struct Ssh {
    scratch: tempfile::TempDir,
    configured: ssh::Ssh,
}

impl Ssh {
    /// `None`, with the reason printed, where there is no ssh server or no namespace can be had.
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

    /// Runs `sweetspot copy` beside an sshd, in a namespace in which `before` was run.
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

    /// A small tree with a bit of everything.
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
fn a_tree_goes_there_and_comes_back() {
    let Some(ssh) = Ssh::new() else { return };
    let tree = ssh.tree();
    let there = succeeded(&ssh.copy("", &[tree.to_str().unwrap(), &ssh.far("there"), "--verbose"]));
    assert!(there.contains("connected to 127.0.0.1"), "{there}");
    assert_same_tree(&tree, &ssh.path("there"));
    let mode = fs::metadata(ssh.path("there/a/b/two")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    // An existing directory gets the tree under its name; a slash at the end stands for its contents.
    fs::create_dir(ssh.path("back")).unwrap();
    let back = ssh.path("back").display().to_string();
    succeeded(&ssh.copy("", &[&ssh.far("there"), &back]));
    assert_same_tree(&tree, &ssh.path("back/there"));
    let contents = ssh.far("there/");
    succeeded(&ssh.copy("", &[&contents, &ssh.path("contents").display().to_string()]));
    assert_same_tree(&tree, &ssh.path("contents"));
    // Files already there are not sent again.
    let again = ssh.copy("", &[&contents, &ssh.path("contents").display().to_string(), "--json"]);
    let outcome: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(outcome["bytes"], 0, "{outcome}");
}

#[test]
fn a_jump_host_is_passed() {
    let Some(ssh) = Ssh::new() else { return };
    let tree = ssh.tree();
    let output = ssh.copy("", &["-J", "gate", tree.to_str().unwrap(), &ssh.far("there")]);
    succeeded(&output);
    assert_same_tree(&tree, &ssh.path("there"));
}

#[test]
fn the_far_end_connects_where_this_one_cannot() {
    let Some(ssh) = Ssh::new() else { return };
    let tree = ssh.tree();
    for (from, to, name) in [
        (tree.display().to_string(), ssh.far("there"), "there"),
        (ssh.far("there"), ssh.path("back").display().to_string(), "back"),
    ] {
        let output = ssh.copy("", &[&from, &to, "--via", "reverse", "--verbose"]);
        let said = succeeded(&output);
        assert!(said.contains("the far end connected to this one"), "{said}");
        assert_same_tree(&tree, &ssh.path(name));
    }
}

/// Routes that refuse the port that the far end listens on, in place of a firewall.
const PORT_IS_CLOSED: &str = "ip rule add pref 9 lookup local && ip rule add pref 7 ipproto tcp dport 2300 prohibit && ip rule del pref 0 && ";

#[test]
fn where_only_ssh_passes_data_goes_through_ssh() {
    let Some(ssh) = Ssh::new() else { return };
    let tree = ssh.tree();
    let output = ssh.copy("", &[tree.to_str().unwrap(), &ssh.far("there"), "--via", "ssh"]);
    let said = succeeded(&output);
    assert!(said.contains("data goes through ssh"), "{said}");
    assert_same_tree(&tree, &ssh.path("there"));
    let back = ssh.path("back").display().to_string();
    succeeded(&ssh.copy("", &[&ssh.far("there"), &back, "--via", "ssh"]));
    assert_same_tree(&tree, &ssh.path("back"));
    // If the far end's port is closed, the next way is tried; a direct connection alone is refused with an error.
    let closed = [tree.to_str().unwrap(), &ssh.far("next"), "--port", "2300", "--verbose"];
    let said = succeeded(&ssh.copy(PORT_IS_CLOSED, &closed));
    assert!(said.contains("the far end connected to this one"), "{said}");
    assert_same_tree(&tree, &ssh.path("next"));
    let blocked = ssh.copy(
        PORT_IS_CLOSED,
        &[tree.to_str().unwrap(), &ssh.far("blocked"), "--via", "direct", "--port", "2300"],
    );
    assert!(!blocked.status.success());
    let said = String::from_utf8_lossy(&blocked.stderr);
    assert!(said.contains("firewall"), "{said}");
}

#[test]
fn what_is_wrong_with_the_far_end_is_said_in_one_line() {
    let Some(ssh) = Ssh::new() else { return };
    let tree = ssh.tree();
    let source = tree.to_str().unwrap();
    let failed = |output: Output, words: &[&str]| {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        let says = |line: &&str| words.iter().all(|word| line.contains(word));
        assert_eq!(stderr.lines().filter(says).count(), 1, "{words:?}: {stderr}");
    };
    let there = ssh.far("there");
    let missing = ["--remote-program", "no-such-program", source, &there, "--retry-for", "1ms"];
    failed(ssh.copy("", &missing), &["no no-such-program on far", "--remote-program"]);
    let nowhere = ssh.far("no/such/directory/x");
    failed(
        ssh.copy("", &[source, &nowhere, "--retry-for", "1ms"]),
        &["no/such/directory/x", "it is not there"],
    );
    let nothing = ssh.far("nothing");
    let here = ssh.path("here").display().to_string();
    failed(ssh.copy("", &[&nothing, &here, "--retry-for", "1ms"]), &["nothing", "No such file"]);
    failed(ssh.copy("", &["/no/such/source", &there]), &["/no/such/source", "No such file"]);
    failed(ssh.copy("", &["other:x", &there]), &["both ends are on other hosts"]);
    failed(ssh.copy("", &["far:x", source, "."]), &["on several hosts"]);
}

#[test]
fn a_dry_run_writes_nothing() {
    let Some(ssh) = Ssh::new() else { return };
    let tree = ssh.tree();
    fs::create_dir(ssh.path("there")).unwrap();
    let output = ssh.copy("", &["-n", tree.to_str().unwrap(), &ssh.far("there")]);
    let said = succeeded(&output);
    assert!(said.contains("would copy") && said.contains("two"), "{said}");
    assert_eq!(fs::read_dir(ssh.path("there")).unwrap().count(), 0);
}

#[test]
fn without_a_host_it_copies_here() {
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("f"), "content").unwrap();
    let mut command = Command::new(SWEETSPOT);
    command.arg("copy").arg(&source).arg(scratch.path().join("target"));
    let output = command.output().unwrap();
    succeeded(&output);
    assert_same_tree(&source, &scratch.path().join("target"));
}
