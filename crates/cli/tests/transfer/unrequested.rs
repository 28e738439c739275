//! Senders that send files nobody asked for.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread;

use sweetspot_hostile_peer::{Listener, RawEntry, Received};
use sweetspot_protocol::{Message, Offer, VERSION};

use crate::running::{Ended, SWEETSPOT, names, run};

/// A hostile sender's offers and files.
struct Attack<'a> {
    offer: Offer,
    entries: Vec<(RawEntry, Option<&'a [u8]>)>,
}

fn offer(name: &str, many: bool, one_file: bool) -> Offer {
    let sizing = Some("kernel".into());
    Offer { name: name.into(), many, one_file, sizing, ..Offer::default() }
}

fn new_file(path: &str) -> (RawEntry, Option<&'static [u8]>) {
    (RawEntry::file(path, 4), Some(b"evil"))
}

fn directory(path: &str) -> (RawEntry, Option<&'static [u8]>) {
    (RawEntry::directory(path), None)
}

/// Performs the attack on the first receiver that sends a hello; connections that only check whether anyone answers are
/// skipped.
fn attack(listener: &Listener, attack: &Attack<'_>) {
    let mut raw = loop {
        let Ok(mut raw) = listener.accept() else { continue };
        if matches!(raw.next(), Received::Message(Message::Hello(_))) {
            break raw;
        }
    };
    let proof = raw.session.listener_proof();
    raw.send_message(&Message::Welcome { proof, early_bytes: 0, ends_with_program: false });
    raw.send_message(&Message::Offer(attack.offer.clone()));
    if matches!(raw.next(), Received::Message(Message::Accept(_))) {
        raw.send_all(&attack.entries);
    }
}

/// Runs `sweetspot` in `directory`, attacked by its other end.
fn attacked(
    directory: &Path,
    case: &Attack<'_>,
    arguments: &dyn Fn(&Listener) -> Vec<String>,
) -> Ended {
    let listener = Listener::start();
    let mut command = Command::new(SWEETSPOT);
    command.current_dir(directory).args(arguments(&listener)).args(["--retry-for", "1ms"]);
    thread::scope(|scope| {
        scope.spawn(|| attack(&listener, case));
        run(command)
    })
}

/// A directory with a user's own files, and a program in place of ssh that answers as a hostile host.
fn home() -> (tempfile::TempDir, std::path::PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let home = scratch.path().join("home");
    fs::create_dir_all(home.join(".ssh")).unwrap();
    fs::write(home.join(".bashrc"), "mine").unwrap();
    fs::write(home.join(".ssh/authorized_keys"), "mine").unwrap();
    (scratch, home)
}

/// Runs `sweetspot copy` from a hostile host.
fn copy(case: &Attack<'_>, operands: &[&str]) -> (tempfile::TempDir, std::path::PathBuf, Ended) {
    let (scratch, home) = home();
    let ssh = scratch.path().join("ssh");
    let ended = attacked(&home, case, &|listener| {
        let ticket = listener.ticket().to_string();
        let reply = serde_json::json!({
            "is": "listening", "version": VERSION, "ticket": ticket,
            "addresses": ["127.0.0.1"], "client": null,
        });
        let script = format!(
            "#!/bin/sh\ncase \" $* \" in *' -G '*) exit 0;; esac\nread -r request\n\
             echo '{reply}'\ncat >/dev/null\n"
        );
        fs::write(&ssh, script).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        let mut arguments = vec!["copy".into(), "--ssh".into(), ssh.display().to_string()];
        arguments.extend(["--via".into(), "direct".into()]);
        arguments.extend(operands.iter().map(|operand| operand.to_string()));
        arguments
    });
    (scratch, home, ended)
}

/// Asserts that the user's own files are unchanged.
fn untouched(home: &Path) {
    assert_eq!(fs::read_to_string(home.join(".bashrc")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(home.join(".ssh/authorized_keys")).unwrap(), "mine");
    assert_eq!(names(&home.join(".ssh")), ["authorized_keys"]);
}

#[test]
fn a_host_can_send_only_the_requested_file() {
    let extras: [Vec<_>; 6] = [
        vec![new_file("report.pdf"), new_file(".bashrc")],
        vec![directory(".ssh"), new_file(".ssh/authorized_keys"), new_file("report.pdf")],
        vec![new_file("report.pdf"), new_file("second.pdf")],
        vec![new_file("report.pdf"), new_file("report.pdf")],
        vec![(RawEntry::symlink("report.pdf", ".bashrc"), None), new_file("report.pdf")],
        vec![directory("report.pdf"), new_file("report.pdf2/x")],
    ];
    for entries in extras {
        let case = Attack { offer: offer("report.pdf", false, false), entries };
        let (_scratch, home, ended) = copy(&case, &["host:docs/report.pdf", "."]);
        ended.failed_saying(&["was not requested", "hostile"]);
        untouched(&home);
        // A record with an unrequested entry is refused as a whole.
        assert_eq!(names(&home), [".bashrc", ".ssh"], "{ended:?}");
    }
}

#[test]
fn the_requested_file_is_received() {
    let offer = offer("report.pdf", false, true);
    let case = Attack { offer, entries: vec![new_file("report.pdf")] };
    let (_scratch, home, ended) = copy(&case, &["host:docs/report.pdf", "."]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(fs::read(home.join("report.pdf")).unwrap(), b"evil");
    untouched(&home);
}

#[test]
fn a_host_cannot_turn_one_file_into_several_or_a_dry_run() {
    let several = offer("2 things", true, false);
    let rehearsal = Offer { dry_run: true, ..offer("report.pdf", false, true) };
    for offer in [several, rehearsal] {
        let case = Attack { offer, entries: vec![new_file("report.pdf"), new_file("x")] };
        let (_scratch, home, ended) = copy(&case, &["host:report.pdf", "new"]);
        ended.failed_saying(&["was not requested"]);
        untouched(&home);
        assert!(!home.join("new").exists(), "a file was asked for, and a directory made");
    }
}

#[test]
fn a_file_announced_by_a_host_cannot_become_a_directory() {
    let offer = offer("report.pdf", false, true);
    let case = Attack { offer, entries: vec![directory("report.pdf"), new_file("report.pdf/x")] };
    let (_scratch, home, ended) = copy(&case, &["host:report.pdf", "new"]);
    ended.failed_saying(&["was not requested"]);
    assert!(!home.join("new").exists());
}

/// A file was requested. A directory with its name is accepted as well: it goes into the new directory, and nothing
/// lands beside that.
#[test]
fn a_host_cannot_write_beside_a_new_destination() {
    let inside = vec![directory("report.pdf"), new_file("report.pdf/x")];
    let outside = [
        vec![directory("report.pdf"), new_file("x")],
        vec![directory("report.pdf"), directory(".ssh"), new_file(".ssh/authorized_keys")],
        vec![new_file("report.pdf"), new_file("new2")],
    ];
    let case = Attack { offer: offer("report.pdf", false, false), entries: inside };
    let (_scratch, home, ended) = copy(&case, &["host:report.pdf", "new"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(names(&home.join("new/report.pdf")), ["x"]);
    assert_eq!(names(&home), [".bashrc", ".ssh", "new"]);
    untouched(&home);
    for entries in outside {
        let case = Attack { offer: offer("report.pdf", false, false), entries };
        let (_scratch, home, ended) = copy(&case, &["host:report.pdf", "new"]);
        ended.failed_saying(&["was not requested"]);
        assert!(names(&home).iter().all(|name| [".bashrc", ".ssh", "new"].contains(&&**name)));
        assert!(!home.join("new").is_dir() || names(&home.join("new")).is_empty());
        untouched(&home);
    }
}

#[test]
fn a_host_can_send_only_the_requested_sources() {
    let entries = vec![new_file("a"), new_file("b"), new_file(".bashrc")];
    let case = Attack { offer: offer("2 things", true, false), entries };
    let (_scratch, home, ended) = copy(&case, &["host:x/a", "host:x/b", "."]);
    ended.failed_saying(&["was not requested"]);
    untouched(&home);
}

#[test]
fn directory_contents_stay_below_the_destination() {
    let (scratch, _) = home();
    let outside = scratch.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let link = (RawEntry::symlink("way", outside.as_os_str().as_encoded_bytes()), None);
    let entries = vec![link, (RawEntry::file("way/x", 4), None), new_file("y")];
    let case = Attack { offer: offer("dir", true, false), entries };
    let (_scratch, home, ended) = copy(&case, &["host:dir/", "here"]);
    // The link itself is kept, as in scp and rsync, but nothing is written through it.
    assert_eq!(ended.code, Some(23), "{ended:?}");
    assert_eq!(names(&home.join("here")), ["way", "y"]);
    assert!(names(&outside).is_empty());
}

#[test]
fn a_remote_path_without_a_predictable_name_is_a_usage_error() {
    let mut command = Command::new(SWEETSPOT);
    command.args(["copy", "host:..", ".", "--ssh", "false"]);
    let ended = run(command);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("add a slash"), "{ended:?}");
}

/// Runs `sweetspot receive` from a hostile sender.
fn receive(
    case: &Attack<'_>,
    arguments: &[&str],
) -> (tempfile::TempDir, std::path::PathBuf, Ended) {
    let (scratch, home) = home();
    let ended = attacked(&home, case, &|listener| {
        let mut all = vec!["receive".into(), listener.ticket().to_string()];
        all.extend(arguments.iter().map(|argument| argument.to_string()));
        all
    });
    (scratch, home, ended)
}

#[test]
fn a_receiver_accepts_only_offered_files() {
    let cases = [
        (offer("f", false, true), vec![new_file("f"), new_file(".bashrc")]),
        (offer("f", false, true), vec![new_file("g")]),
        (offer("f", false, true), vec![directory("f"), new_file("f/x")]),
        (offer("d", false, false), vec![directory("d"), new_file("e")]),
        (offer("d", false, false), vec![directory(".ssh"), new_file(".ssh/authorized_keys")]),
    ];
    for (offer, entries) in cases {
        let case = Attack { offer, entries };
        let (_scratch, home, ended) = receive(&case, &["--force"]);
        ended.failed_saying(&["was not requested"]);
        untouched(&home);
        assert_eq!(names(&home), [".bashrc", ".ssh"], "{ended:?}");
    }
}

#[test]
fn a_receiver_rejects_dotfiles_in_an_existing_directory() {
    let entries = vec![
        new_file("a"),
        (RawEntry::file(".bashrc", 4), None),
        (RawEntry::directory(".ssh"), None),
        (RawEntry::file(".ssh/authorized_keys", 4), None),
    ];
    let case = Attack { offer: offer("2 things", true, false), entries };
    let (_scratch, home, ended) = receive(&case, &["--force"]);
    assert_eq!(ended.code, Some(23), "{ended:?}");
    assert!(ended.stderr.contains("--dotfiles"), "{ended:?}");
    untouched(&home);
    assert_eq!(fs::read(home.join("a")).unwrap(), b"evil");
}

#[test]
fn new_directories_accept_dotfiles_and_a_chosen_name_may_be_one() {
    let entries = vec![directory("d"), new_file("d/.gitignore")];
    let case = Attack { offer: offer("d", false, false), entries };
    let (_scratch, home, ended) = receive(&case, &[".new"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(names(&home.join(".new/d")), [".gitignore"]);
    untouched(&home);
    let case = Attack { offer: offer("f", false, true), entries: vec![new_file("f")] };
    let (_scratch, home, ended) = receive(&case, &[".new"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(names(&home), [".bashrc", ".new", ".ssh"]);
    untouched(&home);
}
