//! Names, modes, attributes and links from a sender: the receiver decides which to accept.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use sweetspot_hostile_peer::{Raw, RawEntry, Received, piece};
use sweetspot_protocol::hash_tree::{PIECE_BYTES, piece_hash};
use sweetspot_protocol::record::{Answer, FileEnd, Record};

use crate::running::{SWEETSPOT, Serve, eventually, file, names, run, send};

/// Sends entries, with content "x" if so marked, and returns the index and the reason of each refused entry.
fn send_all(serve: &Serve, entries: Vec<(RawEntry, bool)>) -> Vec<(usize, String)> {
    let mut raw = Raw::connect(&serve.ticket());
    raw.send_message(&raw.hello());
    raw.offer(&Raw::offer_many());
    let list: Vec<_> = entries.into_iter().map(|(e, x)| (e, x.then_some(&b"x"[..]))).collect();
    let reply = raw.send_all(&list);
    let answers = reply.iter().filter_map(|reply| match reply {
        Received::Record(Record::Answers(answers)) => Some(answers.clone()),
        _ => None,
    });
    let reasons = answers.flatten().enumerate().filter_map(|(number, answer)| match answer {
        Answer::Refused { reason } => Some((number, reason.to_string())),
        _ => None,
    });
    reasons.collect()
}

fn new_file(path: &str) -> (RawEntry, bool) {
    (RawEntry::file(path, 1), true)
}

/// An entry without content, or with content that will not be requested.
fn other(entry: RawEntry) -> (RawEntry, bool) {
    (entry, false)
}

/// Runs lines of Python, which can read and set extended attributes.
fn python(lines: &str, path: &Path) -> Option<String> {
    let mut command = Command::new("python3");
    command.args(["-c", &format!("import os, sys\np = sys.argv[1]\n{lines}")]).arg(path);
    let output = command.stderr(Stdio::null()).output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// A file with a capability, in the form stored by `setcap cap_setuid=ep`, and with three more attributes.
fn with_attributes(path: &str) -> RawEntry {
    let capability = [0x0200_0001u32, 0x80, 0, 0, 0].map(u32::to_le_bytes).concat();
    let attributes = [
        ("security.capability", capability),
        ("trusted.overlay.opaque", b"y".to_vec()),
        ("system.posix_acl_access", b"\x02\0\0\0".to_vec()),
        ("user.colour", b"red".to_vec()),
    ];
    let attributes = attributes.map(|(name, value)| (name.into(), value)).into();
    RawEntry { attributes, ..RawEntry::file(path, 1) }
}

#[test]
fn received_modes_obey_the_umask_and_have_no_special_bits() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("in");
    fs::create_dir(&directory).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "umask 027; exec \"$0\" \"$@\"", SWEETSPOT, "serve", "--dir"]);
    command.arg(&directory).args(["--listen", "127.0.0.1:0", "--force"]);
    let serve = Serve::spawn(scratch, &directory, command);
    let mode = |mode, entry| RawEntry { mode, ..entry };
    let mut raw = Raw::connect(&serve.ticket());
    raw.send_message(&raw.hello());
    raw.offer(&Raw::offer_many());
    fs::create_dir(directory.join("old")).unwrap();
    raw.send_all(&[
        (mode(0o7777, RawEntry::directory("d")), None),
        (mode(0o7777, RawEntry::directory("old")), None),
        (mode(0o6755, RawEntry::file("small", 1)), Some(b"x")),
        (mode(0o4666, RawEntry::file("empty", 0)), None),
    ]);
    // The lower nine bits of each mode, under the umask 027.
    for (name, left) in [("d", 0o750), ("old", 0o750), ("small", 0o750), ("empty", 0o640)] {
        let mode = fs::metadata(directory.join(name)).unwrap().mode();
        assert_eq!(format!("{name} {:o}", mode & 0o7777), format!("{name} {left:o}"));
    }
}

#[test]
fn only_user_attributes_are_accepted_and_only_with_the_option() {
    let probe = tempfile::NamedTempFile::new().unwrap();
    if python("os.setxattr(p, 'user.probe', b'1')", probe.path()).is_none() {
        sweetspot_testing::skipped("the temporary directory has no extended attributes (ext4)");
        return;
    }
    for (arguments, kept) in [(&[][..], "[]"), (&["--xattrs"][..], "['user.colour']")] {
        let serve = Serve::start(arguments);
        assert_eq!(send_all(&serve, vec![(with_attributes("f"), true)]), []);
        let found = python("print(os.listxattr(p))", &serve.directory.join("f"));
        assert_eq!(found.as_deref(), Some(kept));
        let mut ended = serve.interrupt();
        // Without --xattrs, a message says why the attributes are missing.
        let is_reported = std::mem::take(&mut ended.stderr)
            .contains("did not ask for them; start the receiver with --xattrs");
        assert_eq!(is_reported, arguments.is_empty());
    }
}

#[test]
fn a_file_with_oversized_attributes_arrives_without_them() {
    let Ok(scratch) = tempfile::tempdir_in("/dev/shm") else {
        sweetspot_testing::skipped("there is no /dev/shm");
        return;
    };
    let top = scratch.path().join("top");
    fs::create_dir(&top).unwrap();
    let (source, small) = (top.join("f"), top.join("small"));
    fs::write(&source, "content").unwrap();
    fs::write(&small, "content").unwrap();
    let two = "for name in ('user.a', 'user.b'): os.setxattr(p, name, b'x' * 40000)";
    if python(two, &source).is_none() || python("os.setxattr(p, 'user.a', b'x')", &small).is_none()
    {
        sweetspot_testing::skipped("/dev/shm has no extended attributes of 40 kB (Linux 6.6)");
        return;
    }
    let serve = Serve::start(&["--xattrs"]);
    let ticket = serve.ticket().to_string();
    let sent = send(&top, &ticket, &["--xattrs"]);
    assert_eq!(sent.code, Some(23), "{sent:?}");
    let named = sent.stderr.lines().filter(|line| line.contains("more than 64 KiB")).count();
    assert!(named == 1 && !sent.stderr.contains("small:"), "{sent:?}");
    let top = serve.directory.join("top");
    assert_eq!(fs::read(top.join("f")).unwrap(), b"content");
    assert_eq!(fs::read(top.join("small")).unwrap(), b"content");
}

#[test]
fn a_dotfile_is_accepted_only_in_a_directory_made_by_a_transfer() {
    let serve = Serve::start(&[]);
    fs::create_dir_all(serve.directory.join("old/.ssh")).unwrap();
    let refused = send_all(
        &serve,
        vec![
            other(RawEntry::file(".bashrc", 1)),
            other(RawEntry::directory(".config")),
            other(RawEntry::file("old/.profile", 1)),
            other(RawEntry::file("old/.ssh/authorized_keys", 1)),
            other(RawEntry::symlink(".vimrc", "old")),
            other(RawEntry::directory("tree")),
            other(RawEntry::directory("tree/.git")),
            new_file("tree/.git/config"),
        ],
    );
    let numbers: Vec<usize> = refused.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4], "{refused:?}");
    assert!(refused.iter().all(|(_, reason)| reason.contains("begin with a dot")), "{refused:?}");
    assert_eq!(names(&serve.directory), ["old", "tree"]);
    assert!(names(&serve.directory.join("old/.ssh")).is_empty());
    assert_eq!(fs::read(serve.directory.join("tree/.git/config")).unwrap(), b"x");
    // A second transfer resumes the tree made by the first one.
    let resumed = vec![
        other(RawEntry::directory("tree")),
        other(RawEntry::directory("tree/.git")),
        new_file("tree/.git/HEAD"),
        new_file("tree/.gitignore"),
    ];
    assert_eq!(send_all(&serve, resumed), []);
}

#[test]
fn dotfiles_are_accepted_with_the_option() {
    let serve = Serve::start(&["--dotfiles"]);
    assert_eq!(send_all(&serve, vec![new_file(".bashrc")]), []);
    assert_eq!(names(&serve.directory), [".bashrc"]);
}

#[test]
fn a_rejected_dotfile_is_reported_with_the_option_and_the_rest_arrives() {
    let serve = Serve::start(&[]);
    let source = tempfile::tempdir().unwrap();
    fs::write(source.path().join(".hidden"), "x").unwrap();
    fs::write(source.path().join("plain"), "x").unwrap();
    let sent = send(&source.path().join("."), &serve.ticket, &[]);
    assert_eq!(sent.code, Some(23), "{sent:?}");
    assert!(sent.stderr.contains("--dotfiles"), "{sent:?}");
    assert_eq!(names(&serve.directory), ["plain"]);
}

#[test]
fn a_symbolic_link_cannot_lead_out_of_the_directory() {
    let serve = Serve::start(&[]);
    fs::create_dir(serve.directory.join("old")).unwrap();
    let refused = send_all(
        &serve,
        vec![
            other(RawEntry::directory("d")),
            other(RawEntry::symlink("absolute", "/etc")),
            other(RawEntry::symlink("above", "../x")),
            other(RawEntry::symlink("d/above", "../../x")),
            // Once "d/top" is a link to the directory itself, a ".." below it leaves the directory.
            other(RawEntry::symlink("d/top", "..")),
            other(RawEntry::symlink("chain", "d/top/..")),
            other(RawEntry::symlink("inside", "d/f")),
            // Nothing is written through a link, whatever its target.
            other(RawEntry::symlink("l", "old")),
            other(RawEntry::file("l/f", 1)),
        ],
    );
    let numbers: Vec<usize> = refused.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [1, 2, 3, 5, 8], "{refused:?}");
    assert_eq!(names(&serve.directory), ["d", "inside", "l", "old"]);
    assert!(names(&serve.directory.join("old")).is_empty());
}

#[test]
fn a_local_copy_keeps_absolute_links_and_dotfiles() {
    let scratch = tempfile::tempdir().unwrap();
    let (from, to) = (scratch.path().join("from"), scratch.path().join("to"));
    fs::create_dir(&from).unwrap();
    symlink("/etc/passwd", from.join("absolute")).unwrap();
    fs::write(from.join(".hidden"), "x").unwrap();
    let mut copy = Command::new(SWEETSPOT);
    copy.arg("copy").arg(&from).arg(&to);
    let copied = run(copy);
    assert_eq!(copied.code, Some(0), "{copied:?}");
    assert_eq!(names(&to.join("from")), [".hidden", "absolute"]);
}

#[test]
fn a_hard_link_may_point_only_to_files_of_the_same_transfer() {
    let serve = Serve::start(&[]);
    fs::write(serve.directory.join("secret"), "other length").unwrap();
    let refused = send_all(
        &serve,
        vec![
            other(RawEntry::file("secret", 1)),
            other(RawEntry::hard_link("mine", 0)),
            other(RawEntry::symlink("l", "secret")),
            other(RawEntry::hard_link("also-mine", 2)),
            new_file("own"),
            other(RawEntry::hard_link("again", 4)),
        ],
    );
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(names(&serve.directory), ["again", "l", "own", "secret"]);
    let inode = |name: &str| fs::metadata(serve.directory.join(name)).unwrap().ino();
    assert_eq!(inode("again"), inode("own"));
}

#[test]
fn the_slower_of_two_senders_of_a_name_leaves_no_partial_file() {
    let serve = Serve::start(&[]);
    let (winner, content) = file(2 * PIECE_BYTES as usize);
    // The loser learns that no such file exists yet, and waits until the winner has finished.
    let mut loser = Raw::accepted(&serve.ticket());
    loser.list("f", content.len() as u64);
    loser.next_record();
    assert_eq!(send(winner.path(), &serve.ticket, &["--name", "f"]).code, Some(0));
    let other = vec![7; content.len()];
    loser.content(0, &other).unwrap();
    let hash = *blake3::hash(&other).as_bytes();
    let (size, pieces_sent) = (other.len() as u64, 2);
    loser.ends(vec![FileEnd { entry: 0, size, pieces_sent, hash }]);
    loser.wait_for(|reply| match reply {
        Received::Record(Record::Results(results)) => {
            let reason = results[0].outcome.as_ref().unwrap_err();
            assert!(reason.to_string().contains("already exists"), "{reason}");
            Some(())
        }
        _ => None,
    });
    eventually("only the winner's file remains", || serve.names() == ["f"]);
    assert!(fs::read(serve.directory.join("f")).unwrap() == content);
}

#[test]
fn a_disconnected_sender_leaves_no_partial_file_for_an_existing_name() {
    let serve = Serve::start(&[]);
    let (winner, content) = file(2 * PIECE_BYTES as usize);
    let mut loser = Raw::accepted(&serve.ticket());
    loser.list("f", content.len() as u64);
    loser.next_record();
    // A partial file of the loser, next to a finished file that was written separately.
    let first = &content[..PIECE_BYTES as usize];
    loser.send(&piece(0, 0, piece_hash(0, false, first), first));
    eventually("a partial file is there", || !serve.names().is_empty());
    fs::copy(winner.path(), serve.directory.join("f")).unwrap();
    drop(loser);
    eventually("only the finished file remains", || serve.names() == ["f"]);
}

#[test]
fn a_planted_partial_file_receives_no_content() {
    let serve = Serve::start(&[]);
    let (source, content) = file(2 * PIECE_BYTES as usize);
    // The name of a partial file follows from the file's name, so others with write access to the directory
    // can predict it.
    let digits: String =
        blake3::hash(b"f").as_bytes()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let prepared = serve.directory.join(format!(".sweetspot-{digits}.part"));
    fs::write(&prepared, "x").unwrap();
    fs::set_permissions(&prepared, fs::Permissions::from_mode(0o666)).unwrap();
    let inode = fs::metadata(&prepared).unwrap().ino();
    // Held open, so that no new file gets its inode.
    let _held = fs::File::open(&prepared).unwrap();
    assert_eq!(send(source.path(), &serve.ticket, &["--name", "f"]).code, Some(0));
    let finished = serve.directory.join("f");
    assert_ne!(fs::metadata(&finished).unwrap().ino(), inode);
    assert!(fs::read(&finished).unwrap() == content);
}

/// A pipe among the sources is left out, and neither end treats the rest as everything.
#[test]
fn the_receiver_also_reports_an_entry_that_the_sender_skipped() {
    let scratch = tempfile::tempdir().unwrap();
    let (file, pipe) = (scratch.path().join("f"), scratch.path().join("pipe"));
    fs::write(&file, "content").unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let serve = Serve::start(&["--once"]);
    let mut command = Command::new(SWEETSPOT);
    command.arg("send").args([&file, &pipe]).arg(&serve.ticket);
    assert_eq!(run(command).code, Some(23));
    let served = serve.wait();
    assert_eq!(served.code, Some(23), "{served:?}");
    assert!(served.stderr.contains("the sender left out 1 entry"), "{served:?}");

    // Other receivers cannot get it either, so the offer ends.
    let mut command = Command::new(SWEETSPOT);
    command.arg("send").args([&pipe, &file]).args(["--listen", "127.0.0.1:0"]);
    let offer = Serve::spawn(tempfile::tempdir().unwrap(), scratch.path(), command);
    let mut command = Command::new(SWEETSPOT);
    command.args(["receive", &offer.ticket, "."]).current_dir(&offer.directory);
    command.arg("--force");
    let received = run(command);
    assert_eq!(received.code, Some(23), "{received:?}");
    assert_eq!(offer.wait().code, Some(23));
}

/// The second transfer finds the files made by the first one.
#[test]
fn existing_dotfiles_count_as_unchanged() {
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("src");
    fs::create_dir_all(source.join(".git")).unwrap();
    fs::write(source.join(".hidden"), "1").unwrap();
    fs::write(source.join(".git/config"), "22").unwrap();
    let serve = Serve::start(&[]);
    for _ in 0..2 {
        let sent = send(&source, &serve.ticket, &[]);
        assert_eq!(sent.code, Some(0), "{sent:?}");
    }
    let again = Serve::start_in(tempfile::tempdir().unwrap(), &serve.directory, &[]);
    let sent = send(&source, &again.ticket, &[]);
    assert_eq!(sent.code, Some(0), "a directory of another process: {sent:?}");
    fs::hard_link(source.join(".hidden"), source.join("visible")).unwrap();
    let sent = send(&source, &again.ticket, &[]);
    assert_eq!(sent.code, Some(23), "no further name for it: {sent:?}");
    assert!(!serve.directory.join("src/visible").exists());
    fs::remove_file(source.join("visible")).unwrap();
    fs::write(source.join(".hidden"), "changed").unwrap();
    let sent = send(&source, &again.ticket, &[]);
    // `.git/config` is still unchanged.
    assert_eq!(sent.code, Some(23), "{sent:?}");
    assert!(sent.stderr.contains("src/.hidden was left out"), "{sent:?}");
    assert_eq!(fs::read(serve.directory.join("src/.hidden")).unwrap(), b"1");
}
