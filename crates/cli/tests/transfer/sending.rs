//! A sender's reactions to a hostile receiver, and to files that change during the transfer.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use sweetspot_hostile_peer::{Dial, Raw, Received};
use sweetspot_linux::clock;
use sweetspot_protocol::hash_tree::PIECE_BYTES;
use sweetspot_protocol::record::{Answer, Entry, EntryKind, FileResult, Record};
use sweetspot_protocol::{Message, Role, TEMP_FILE_PREFIX};
use sweetspot_units::Duration;

use crate::running::{Ended, SWEETSPOT, Serve, run, send, signal, wait};

/// Runs `sweetspot send` with the contents of `directory`, for the holder of its ticket.
fn offering(directory: &Path, arguments: &[&str]) -> Serve {
    let mut command = Command::new(SWEETSPOT);
    command.arg("send").arg(directory.join("")).args(["--listen", "127.0.0.1:0"]).args(arguments);
    Serve::spawn(tempfile::tempdir().unwrap(), directory, command)
}

/// Requests all content.
fn all(list: &[Entry]) -> Vec<Answer> {
    let answer = |entry: &Entry| match entry.kind {
        EntryKind::File { .. } => Answer::All,
        _ => Answer::Nothing,
    };
    list.iter().map(answer).collect()
}

/// The content of each entry that was sent, by name.
type Sent = Vec<(String, Vec<u8>)>;
/// The reason for each entry that was not sent, by name.
type Gone = Vec<(String, String)>;

/// The single transfer of an offer has begun, and its ticket is used again.
#[test]
fn a_second_receiver_of_an_offer_is_rejected_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "content").unwrap();
    let serve = offering(directory.path(), &[]);
    let (_first, _) = Raw::receiving(&serve.ticket(), &Dial::default());
    let second = receiving(&serve, directory.path(), "x");
    second.failed_saying(&["the other end refused: another transfer", "a new ticket"]);
}

/// Runs `sweetspot receive` with this ticket into `target` below `directory`.
fn receiving(serve: &Serve, directory: &Path, target: &str) -> Ended {
    let mut command = Command::new(SWEETSPOT);
    command.args(["receive", &serve.ticket, target]).current_dir(directory);
    run(command)
}

/// The receiver names an existing file, and then another one, as the error advises.
#[test]
fn a_rejected_offer_can_still_be_received() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "content").unwrap();
    fs::write(directory.path().join("taken"), "other content").unwrap();
    let mut command = Command::new(SWEETSPOT);
    command.arg("send").arg(directory.path().join("file")).args(["--listen", "127.0.0.1:0"]);
    let serve = Serve::spawn(tempfile::tempdir().unwrap(), directory.path(), command);
    receiving(&serve, directory.path(), "taken").failed_saying(&["taken already exists"]);
    let received = receiving(&serve, directory.path(), "free");
    assert_eq!(received.code, Some(0), "{received:?}");
    assert_eq!(fs::read_to_string(directory.path().join("free")).unwrap(), "content");
    let ended = serve.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("waiting for another try with this ticket"), "{ended:?}");
}

/// Starts `command` with a standard input that does not end until the thread's result is dropped.
fn endless(mut command: Command) -> (Child, JoinHandle<io::Result<ChildStdin>>) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let held = thread::spawn(move || input.write_all(&[7; 300_000]).map(|()| input));
    (child, held)
}

/// An endless offer, and the program that receives it.
struct Endless {
    offer: Child,
    receive: Child,
    /// The unread rest of the receiver's standard error, and the part read so far.
    lines: BufReader<ChildStderr>,
    stderr: String,
    _held: JoinHandle<io::Result<ChildStdin>>,
}

/// An offer that `receive` has begun to accept in `directory`.
fn endless_offer(directory: &Path) -> Endless {
    let mut command = Command::new(SWEETSPOT);
    command.args(["send", "-", "--name", "f", "--listen", "127.0.0.1:0"]);
    let (mut offer, _held) = endless(command);
    let mut ticket = String::new();
    BufReader::new(offer.stdout.as_mut().unwrap()).read_line(&mut ticket).unwrap();
    let mut command = Command::new(SWEETSPOT);
    command.args(["receive", ticket.trim()]).current_dir(directory);
    let mut receive = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(receive.stderr.take().unwrap());
    let mut stderr = String::new();
    while !stderr.contains("f: peer 127.0.0.1:") {
        assert_ne!(lines.read_line(&mut stderr).unwrap(), 0, "{stderr}");
    }
    Endless { offer, receive, lines, stderr, _held }
}

/// A killed program sends no message, but its port refuses connections.
#[test]
fn a_peer_of_a_killed_program_gives_up_after_two_refused_connections() {
    let directory = tempfile::tempdir().unwrap();
    let Endless { mut offer, mut receive, mut lines, mut stderr, _held } =
        endless_offer(directory.path());
    signal(&offer, "KILL");
    wait(&mut offer);
    lines.read_to_string(&mut stderr).unwrap();
    let code = wait(&mut receive);
    assert_eq!(stderr.matches("trying again in").count(), 2, "{stderr}");
    let ended = Ended { code, stdout: String::new(), stderr };
    ended.failed_saying(&["has ended; received data is kept", "with a new ticket"]);
}

/// The ticket ends with its program, so the other end need not retry for fifteen minutes.
#[test]
fn a_peer_learns_at_once_that_a_stopped_program_ended_its_ticket() {
    const WORDS: &[&str] =
        &["it was stopped, and its ticket ended with it", "ask for a new ticket"];
    let directory = tempfile::tempdir().unwrap();
    let Endless { mut offer, mut receive, mut lines, mut stderr, _held } =
        endless_offer(directory.path());
    signal(&offer, "INT");
    lines.read_to_string(&mut stderr).unwrap();
    let code = wait(&mut receive);
    Ended { code, stdout: String::new(), stderr }.failed_saying(WORDS);
    assert_eq!(wait(&mut offer), Some(130));

    for arguments in [&["--once"][..], &[]] {
        let mut serve = Serve::start(arguments);
        let mut command = Command::new(SWEETSPOT);
        command.args(["send", "-", "--name", "f", &serve.ticket]);
        let (mut sender, _held) = endless(command);
        serve.read_until("f: peer 127.0.0.1:");
        serve.interrupt();
        let code = wait(&mut sender);
        let mut stderr = String::new();
        sender.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Ended { code, stdout: String::new(), stderr }.failed_saying(WORDS);
    }
}

/// A directory `tree` with two files, and a directory `here` that already has one of them.
fn half_taken() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir(path("tree")).unwrap();
    for name in ["new", "taken"] {
        fs::write(path("tree").join(name), "content").unwrap();
    }
    fs::create_dir(path("here")).unwrap();
    fs::write(path("here/taken"), "other content").unwrap();
    directory
}

#[test]
fn an_offer_with_one_try_exits_with_23_if_files_failed() {
    let directory = half_taken();
    let serve = offering(&directory.path().join("tree"), &["--one-try"]);
    let received = receiving(&serve, directory.path(), "here");
    assert_eq!(received.code, Some(23), "{received:?}");
    let ended = serve.wait();
    assert_eq!(ended.code, Some(23), "{ended:?}");
    ended.failed_saying(&["taken already exists"]);
}

/// One file of a tree exists. The receiver overwrites it in a second run, as the error advises.
#[test]
fn a_partly_rejected_offer_can_be_received_again() {
    let directory = half_taken();
    let path = |name: &str| directory.path().join(name);
    let serve = offering(&path("tree"), &[]);
    let received = receiving(&serve, directory.path(), "here");
    assert_eq!(received.code, Some(23), "{received:?}");
    received.failed_saying(&["taken already exists", "overwrite it with --force"]);
    let mut command = Command::new(SWEETSPOT);
    command.args(["receive", "--force", &serve.ticket, "here"]).current_dir(directory.path());
    let forced = run(command);
    assert_eq!(forced.code, Some(0), "{forced:?}");
    assert_eq!(fs::read_to_string(path("here/taken")).unwrap(), "content");
    let ended = serve.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("waiting for another try with this ticket"), "{ended:?}");
}

/// A receiver is killed and restarted. That is a new transfer by the ticket's holder.
#[test]
fn a_broken_receive_can_be_restarted() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "content").unwrap();
    let mut serve = offering(directory.path(), &[]);
    drop(Raw::receiving(&serve.ticket(), &Dial::default()));
    serve.read_until("(waiting for it)");
    let received = receiving(&serve, directory.path(), "again");
    assert_eq!(received.code, Some(0), "{received:?}");
    assert_eq!(fs::read_to_string(directory.path().join("again/file")).unwrap(), "content");
    assert_eq!(serve.wait().code, Some(0));
}

/// The sender fails before the receiver has answered the offer.
#[test]
fn a_receiver_learns_that_an_offered_file_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "content").unwrap();
    let mut command = Command::new(SWEETSPOT);
    command.arg("send").arg(&file).args(["--listen", "127.0.0.1:0"]);
    let serve = Serve::spawn(tempfile::tempdir().unwrap(), directory.path(), command);
    fs::remove_file(&file).unwrap();
    receiving(&serve, directory.path(), "x").failed_saying(&["cannot read a file to send"]);
    assert_eq!(serve.wait().code, Some(1));
}

/// Waits until each entry was sent or reported as gone.
fn delivered(raw: &mut Raw, list: &[Entry]) -> (Sent, Gone) {
    let name = |entry: u32| list[entry as usize].path.to_string();
    let (mut delivered_pieces, mut unavailable) = (Vec::new(), Vec::new());
    loop {
        match raw.next() {
            Received::Piece { entry, content, .. } => delivered_pieces.push((name(entry), content)),
            Received::Record(Record::Gone { entry, reason }) => {
                unavailable.push((name(entry), reason.to_string()));
            }
            Received::Message(sweetspot_protocol::Message::End) => break,
            Received::Closed(_) | Received::Silent => {
                panic!("no end: {delivered_pieces:?} {unavailable:?}")
            }
            _ => {}
        }
    }
    delivered_pieces.sort();
    unavailable.sort();
    (delivered_pieces, unavailable)
}

/// After a receiver has read the list, other files replace the listed ones, and only then it answers.
#[test]
fn a_sender_opens_only_the_files_it_listed() {
    let scratch = tempfile::tempdir().unwrap();
    let (top, outside) = (scratch.path().join("top"), scratch.path().join("outside"));
    for directory in [&top, &top.join("dir"), &outside] {
        fs::create_dir(directory).unwrap();
    }
    for name in ["calm", "dir/inner", "link", "named-pipe", "other", "removed"] {
        fs::write(top.join(name), "public").unwrap();
    }
    fs::write(outside.join("inner"), "secret").unwrap();
    let serve = offering(&top, &[]);
    let (mut raw, offer) = Raw::receiving(&serve.ticket(), &Dial::default());
    assert_eq!(offer.name.raw(), "top", "the receiver learns the name and not the path");
    let list = raw.list_of_entries();

    fs::remove_file(top.join("link")).unwrap();
    symlink(outside.join("inner"), top.join("link")).unwrap();
    fs::rename(top.join("dir"), scratch.path().join("away")).unwrap();
    symlink(&outside, top.join("dir")).unwrap();
    fs::rename(outside.join("inner"), top.join("other")).unwrap();
    fs::hard_link(top.join("other"), outside.join("inner")).unwrap();
    fs::remove_file(top.join("named-pipe")).unwrap();
    Command::new("mkfifo").arg(top.join("named-pipe")).status().unwrap();
    fs::remove_file(top.join("removed")).unwrap();

    raw.answer(all(&list));
    let (delivered_pieces, unavailable) = delivered(&mut raw, &list);
    assert_eq!(delivered_pieces, [("calm".to_owned(), b"public".to_vec())]);
    let names: Vec<_> = unavailable.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["dir/inner", "link", "named-pipe", "other", "removed"]);
    for (name, reason) in &unavailable {
        let expected = if name == "removed" { "it does not exist" } else { "was replaced" };
        assert!(reason.contains(expected), "{name}: {reason}");
        let path = scratch.path().to_str().unwrap();
        assert!(!reason.contains(path) && !reason.contains("os error"), "{reason}");
    }
}

/// The list arrives with the offer, and the sender's summary with the content: each one RTT before the receiver could have
/// asked for it.
#[test]
fn a_listening_sender_waits_for_no_unnecessary_message() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "content").unwrap();
    let serve = offering(directory.path(), &[]);
    let mut raw = Raw::dial(&serve.ticket(), &Dial::default()).unwrap();
    raw.send_message(&raw.hello_as(Role::Receiver));
    raw.read_welcome();
    raw.read_offer();
    let list = raw.list_of_entries();
    raw.send_message(&Raw::accept());
    raw.answer(all(&list));
    let (delivered_pieces, _) = delivered(&mut raw, &list);
    assert_eq!(delivered_pieces, [("file".to_owned(), b"content".to_vec())]);
    assert!(matches!(raw.next(), Received::Message(Message::SenderSummary(_))));
}

/// A receiver that accepts early content gets the beginning of a file with the list, up to its limit. Later it gets the rest of
/// the files that it requests.
#[test]
fn early_content_is_not_sent_again() {
    let directory = tempfile::tempdir().unwrap();
    let large: Vec<u8> = (0..PIECE_BYTES + 5).map(|byte| (byte % 251) as u8).collect();
    let contents = [("a", large.clone()), ("b", b"of b".to_vec()), ("c", large)];
    for (early_limit, answer, changes) in [
        (0, Answer::All, false),
        (1, Answer::All, false),
        (3000, Answer::All, false),
        (u32::MAX, Answer::All, false),
        (u32::MAX, Answer::Different { pieces: 0 }, false),
        (u32::MAX, Answer::Nothing, false),
        (u32::MAX, Answer::Refused { reason: "no".into() }, false),
        (3000, Answer::All, true),
    ] {
        let case = format!("{early_limit} {answer:?} {changes}");
        for (name, content) in &contents {
            fs::write(directory.path().join(name), content).unwrap();
        }
        let serve = offering(directory.path(), &[]);
        let mut raw = Raw::dial(&serve.ticket(), &Dial::default()).unwrap();
        raw.send_message(&raw.hello_accepting(early_limit));
        raw.read_welcome();
        raw.read_offer();
        let (mut early, mut count) = (Vec::new(), 0);
        loop {
            match raw.next() {
                Received::Record(Record::Entries(entries)) => count += entries.len(),
                Received::Record(Record::Early { entry, content }) => {
                    assert_eq!(entry, 0, "{case}: the connection carries no more than that");
                    early = content;
                }
                Received::Record(Record::Listed { .. }) => break,
                other => panic!("{case}: {other:?}"),
            }
        }
        let bound = early_limit.min(64 << 10) as usize;
        assert!(early.len() <= bound && early.is_empty() == (early_limit == 0), "{case}");
        assert!(contents[0].1.starts_with(&early), "{case}");
        if changes {
            // The file keeps its listed length.
            let mut changed = contents[0].1.clone();
            changed[0] ^= 1;
            fs::write(directory.path().join("a"), changed).unwrap();
        }
        raw.send_message(&Raw::accept());
        raw.answer(vec![answer.clone(); count]);
        let mut delivered_pieces = vec![Vec::new(); count];
        loop {
            match raw.next() {
                Received::Piece { entry, content, .. } => {
                    delivered_pieces[entry as usize].extend(content)
                }
                Received::Message(Message::End) => break,
                Received::Record(Record::Ends(_)) | Received::Message(Message::Busy) => {}
                other => panic!("{case}: {other:?}"),
            }
        }
        let wanted = matches!(answer, Answer::All | Answer::Different { .. });
        let repeats = changes || answer != Answer::All;
        for (place, (_, content)) in contents.iter().enumerate() {
            let skipped = if place == 0 && !repeats { early.len() } else { 0 };
            let expected = if wanted { content.len() - skipped } else { 0 };
            assert_eq!(delivered_pieces[place].len(), expected, "{case}: {place}");
            let is_right = changes || !wanted || content.ends_with(&delivered_pieces[place]);
            assert!(is_right, "{case}: {place}");
        }
    }
}

/// A large file is not started if another file has taken its name.
#[test]
fn a_replaced_large_file_is_not_sent() {
    let scratch = tempfile::tempdir().unwrap();
    let top = scratch.path().join("top");
    fs::create_dir(&top).unwrap();
    fs::write(top.join("large"), vec![1; 3 * PIECE_BYTES as usize]).unwrap();
    fs::write(scratch.path().join("secret"), vec![2; 3 * PIECE_BYTES as usize]).unwrap();
    let serve = offering(&top, &[]);
    let (mut raw, _) = Raw::receiving(&serve.ticket(), &Dial::default());
    let list = raw.list_of_entries();
    fs::rename(scratch.path().join("secret"), top.join("large")).unwrap();
    raw.answer(all(&list));
    let (delivered_pieces, unavailable) = delivered(&mut raw, &list);
    assert!(delivered_pieces.is_empty() && unavailable.len() == 1, "{unavailable:?}");
}

/// Programs repeatedly write whole files that consist of a single letter: half of them in place, half as new files; some pause
/// between two files. Every file that arrives has a single letter, and a length that was written.
#[test]
fn changing_files_never_arrive_torn() {
    const FILES: usize = 20;
    const ROUNDS: usize = 8;
    let scratch = tempfile::tempdir().unwrap();
    let top = scratch.path().join("top");
    fs::create_dir(&top).unwrap();
    // Some files have one piece, and some have three.
    let length = |file: usize| if file == 0 { 3 * PIECE_BYTES as usize } else { 250_000 };
    let path = |file: usize| top.join(format!("{file:02}"));
    (0..FILES).for_each(|file| fs::write(path(file), vec![b'a'; length(file)]).unwrap());
    let finished = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..4 {
            let (finished, path) = (&finished, &path);
            scope.spawn(move || {
                for letter in (b'a'..=b'z').cycle() {
                    for file in (writer..FILES).step_by(4) {
                        if finished.load(Ordering::Relaxed) {
                            return;
                        }
                        let content = vec![letter; length(file)];
                        if file % 8 < 4 {
                            let open = fs::File::options().write(true).open(path(file)).unwrap();
                            open.write_all_at(&content, 0).unwrap();
                        } else {
                            fs::write(path(file), content).unwrap();
                        }
                        if writer > 1 {
                            clock::sleep_until(clock::now() + Duration::from_millis(3));
                        }
                    }
                }
            });
        }
        for round in 0..ROUNDS {
            let serve = Serve::start(&["--force"]);
            let sent = send(&top, &serve.ticket, &["--checksum"]);
            let arrived = fs::read_dir(serve.directory.join("top"));
            let arrived = arrived.into_iter().flatten().map(|entry| entry.unwrap());
            // The remains of a refused large file have only a temporary name.
            let named = |entry: &fs::DirEntry| {
                !entry.file_name().to_string_lossy().starts_with(TEMP_FILE_PREFIX)
            };
            let arrived: Vec<_> = arrived.filter(named).collect();
            for entry in &arrived {
                let content = fs::read(entry.path()).unwrap();
                let letter = content.first().copied();
                // A newly created file is empty for a moment, which is a valid state.
                let whole = content.iter().all(|byte| Some(*byte) == letter)
                    && [0, 250_000, 3 * PIECE_BYTES as usize].contains(&content.len());
                if !whole {
                    finished.store(true, Ordering::Relaxed);
                }
                assert!(whole, "round {round}: {:?} is torn; {sent:?}", entry.path());
            }
            let complete = arrived.len() == FILES;
            if complete != (sent.code == Some(0)) {
                finished.store(true, Ordering::Relaxed);
            }
            assert_eq!(complete, sent.code == Some(0), "round {round}: {sent:?}");
        }
        finished.store(true, Ordering::Relaxed);
    });
}

/// A receiver announces or sends more than a sender could need. The sender disconnects, and reports the reason.
#[test]
fn a_sender_drops_a_receiver_that_claims_too_much() {
    type Claim = fn(&mut Raw);
    let claims: [(&str, Claim); 6] = [
        ("more hashes than a file has pieces", |raw| {
            raw.answer(vec![Answer::Different { pieces: u32::MAX }]);
        }),
        ("referred to entry 0", |raw| raw.hashes(0, 0, vec![[0; 32]])),
        ("hashes out of order", |raw| {
            raw.answer(vec![Answer::Different { pieces: 2 }]);
            raw.hashes(7, 0, vec![[0; 32]]);
        }),
        ("more hashes than it announced", |raw| {
            raw.answer(vec![Answer::Different { pieces: 2 }]);
            raw.hashes(0, 0, vec![[0; 32]; 3]);
        }),
        ("referred to entry 4000000000", |raw| {
            raw.results(vec![FileResult { entry: 4_000_000_000, outcome: Err("x".into()) }]);
        }),
        ("answers", |raw| raw.answer(vec![Answer::Nothing, Answer::Nothing])),
    ];
    let top = tempfile::tempdir().unwrap();
    fs::write(top.path().join("file"), vec![1; 2 * PIECE_BYTES as usize]).unwrap();
    for (words, claim) in claims {
        let serve = offering(top.path(), &[]);
        let (mut raw, _) = Raw::receiving(&serve.ticket(), &Dial::default());
        assert_eq!(raw.list_of_entries().len(), 1);
        claim(&mut raw);
        let reply = raw.drain();
        let reason = reply.iter().find_map(Received::reason);
        assert!(reason.as_ref().is_some_and(|reason| reason.contains(words)), "{words}: {reply:?}");
        let ended = serve.wait();
        assert!(ended.code.is_some_and(|code| code != 0), "{ended:?}");
        assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    }
}

/// A petabyte of holes: the list of its hashes would need 137 GB.
#[test]
fn a_giant_sparse_file_costs_its_sender_no_memory() {
    let top = tempfile::tempdir().unwrap();
    let file = fs::File::create(top.path().join("holes")).unwrap();
    // ext4 allows 16 TiB minus a block per file, other file systems more.
    let lengths = [1 << 50, (1 << 44) - 4096];
    let Some(length) = lengths.into_iter().find(|length| file.set_len(*length).is_ok()) else {
        return sweetspot_testing::skipped("this file system holds no file of 16 TiB");
    };
    let peak = |serve: &Serve| -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", serve.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse().unwrap()
    };
    let serve = offering(top.path(), &[]);
    let (mut raw, _) = Raw::receiving(&serve.ticket(), &Dial::default());
    let list = raw.list_of_entries();
    assert_eq!(list[0].kind, EntryKind::File { size: length, sparse: true });
    let before = peak(&serve);
    raw.answer(vec![Answer::Compare { pieces: 0 }]);
    // The sender reads this, and learns that no more content is wanted.
    raw.results(vec![FileResult { entry: 0, outcome: Err("enough".into()) }]);
    let (delivered_pieces, unavailable) = delivered(&mut raw, &list);
    assert!(
        delivered_pieces.is_empty() && unavailable.is_empty(),
        "{delivered_pieces:?} {unavailable:?}"
    );
    // 32 bytes for each of 2^26 pieces of 256 KiB would need 2,147,484 kB of address space. Two threads that allocate for the
    // first time need 131,072 kB.
    let more = peak(&serve) - before;
    assert!(more < 1_000_000, "{more} kB");
}
