//! Limits on the cost that a peer with a ticket or a key can cause: memory, time, and disk space.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command};

use sweetspot_hostile_peer::{self as wire, Dial, Identity, Raw, RawEntry, Received};
use sweetspot_protocol::hash_tree::{MAX_FILE_BYTES, PIECE_BYTES, piece_hash, pieces};
use sweetspot_protocol::record::{Answer, FileEnd, Record};

use crate::running::{SWEETSPOT, Serve, eventually, file, names, send, signal};

/// The longest sparse file that a receiver accepts: 16 TiB.
const LONGEST_SPARSE: u64 = 16 << 40;
/// For a million files from an honest sender, a receiver needs 64 MB in addition to its windows. A hostile sender can
/// cause at most a few times as much (crates/transfer/src/limits.rs).
const MAX_MEMORY: u64 = 200_000_000;

/// The peak memory of a process, in bytes.
fn peak_memory(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

fn answers(raw: &mut Raw) -> Vec<Answer> {
    raw.wait_for(|received| match received {
        Received::Record(Record::Answers(answers)) => Some(answers.clone()),
        _ => None,
    })
}

fn honest_transfer_succeeds(serve: &Serve) {
    let (file, content) = file(300_000);
    assert_eq!(send(file.path(), &serve.ticket, &["--name", "honest"]).code, Some(0));
    assert_eq!(fs::read(serve.directory.join("honest")).unwrap(), content);
}

#[test]
fn an_announced_size_allocates_no_memory() {
    let serve = Serve::start(&[]);
    let mut raw = Raw::accepted(&serve.ticket());
    raw.entries(&[
        RawEntry::sparse("longest", LONGEST_SPARSE),
        RawEntry::sparse("f", MAX_FILE_BYTES),
    ]);
    let answers = answers(&mut raw);
    assert_eq!(answers[0], Answer::All);
    assert!(matches!(&answers[1], Answer::Refused { reason } if reason.raw().contains("16 TiB")));
    // A hole at the very end, then the end of the file: all other pieces are missing.
    let last = pieces(LONGEST_SPARSE) as u32 - 1;
    raw.holes(0, last, 1);
    raw.ends(vec![FileEnd { entry: 0, size: LONGEST_SPARSE, pieces_sent: 1, hash: [0; 32] }]);
    let reason = raw.wait_for(|received| match received {
        Received::Record(Record::Results(results)) => results[0].outcome.clone().err(),
        _ => None,
    });
    assert!(reason.raw().contains("pieces of it are missing"), "{reason}");
    honest_transfer_succeeds(&serve);
    assert!(peak_memory(&serve.child) < MAX_MEMORY);
    serve.interrupt();
}

/// Four holes of 16 TiB each would take hours to hash.
#[test]
fn the_receiver_stops_hashing_holes_once_their_sender_is_gone() {
    let serve = Serve::start(&[]);
    let announce = |raw: &mut Raw| {
        let all = pieces(LONGEST_SPARSE) as u32;
        let list: Vec<_> =
            (0..4).map(|n| RawEntry::sparse(format!("f{n}"), LONGEST_SPARSE)).collect();
        raw.entries(&list);
        assert_eq!(answers(raw), [Answer::All, Answer::All, Answer::All, Answer::All]);
        for n in 0..4 {
            raw.holes(n, 0, all);
            let size = LONGEST_SPARSE;
            raw.ends(vec![FileEnd { entry: n, size, pieces_sent: all, hash: [0; 32] }]);
        }
    };
    let mut raw = Raw::accepted(&serve.ticket());
    announce(&mut raw);
    drop(raw);
    eventually("what the sender left is removed", || names(&serve.directory).is_empty());
    honest_transfer_succeeds(&serve);
    // A remaining sender does not delay the server's exit.
    let mut raw = Raw::accepted(&serve.ticket());
    announce(&mut raw);
    signal(&serve.child, "TERM");
    let ended = serve.wait();
    assert!(ended.code.is_some(), "it did not end: {ended:?}");
}

/// Hard links with names of 4 KB that share nothing. Names must be kept until the end, so the receiver refuses them beyond
/// a limit.
#[test]
fn retained_names_have_a_memory_limit() {
    let serve = Serve::start(&[]);
    let mut raw = Raw::accepted(&serve.ticket());
    let long = |n: usize| format!("{n:08}/{}x", "a/".repeat(2000));
    let mut refused = None;
    // 100 MB of names, twice the limit of the record.
    for batch in 0..250 {
        let link = |n: usize| match n {
            0 => RawEntry::file("f", 0),
            _ => RawEntry::hard_link(long(n), 0),
        };
        raw.entries(&(0..100).map(|n| link(batch * 100 + n)).collect::<Vec<_>>());
        refused = answers(&mut raw).into_iter().find_map(|answer| match answer {
            Answer::Refused { reason } => Some(reason),
            _ => None,
        });
        if refused.is_some() {
            break;
        }
    }
    assert!(refused.expect("no limit").raw().contains("send it in parts"));
    assert!(peak_memory(&serve.child) < MAX_MEMORY);
    drop(raw);
    honest_transfer_succeeds(&serve);
    serve.interrupt();
}

#[test]
fn attributes_have_a_memory_limit() {
    let serve = Serve::start(&[]);
    let mut raw = Raw::accepted(&serve.ticket());
    for n in 0..200 {
        let attributes = vec![(b"user.x".to_vec(), vec![0; 1_000_000])];
        raw.entries(&[RawEntry { attributes, ..RawEntry::file(format!("f{n}"), 10_000_000) }]);
        // The receiver may skip them, or refuse the file.
        assert_eq!(answers(&mut raw).len(), 1);
    }
    assert!(peak_memory(&serve.child) < MAX_MEMORY);
    drop(raw);
    honest_transfer_succeeds(&serve);
    serve.interrupt();
}

/// The sender keeps listing files without reading answers, so the receiver stops reading.
#[test]
fn the_receiver_stops_reading_from_a_sender_that_does_not_read() {
    let serve = Serve::start(&[]);
    let mut raw = Raw::accepted(&serve.ticket());
    let timeout = std::time::Duration::from_secs(2);
    raw.socket().set_write_timeout(Some(timeout)).unwrap();
    let mut sent = 0u64;
    for batch in 0u64.. {
        // The files are refused with long reasons, so that the answers soon fill the buffers of both sockets.
        let name = |n| format!("{batch:08}{n:03}/{}", "y".repeat(240));
        let list: Vec<_> = (0..500).map(|n| RawEntry::file(name(n), 300_000)).collect();
        let frame = wire::entries(&list);
        match raw.try_send(&frame) {
            Ok(()) => sent += frame.len() as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
        assert!(sent < 100_000_000, "it reads on");
    }
    assert!(peak_memory(&serve.child) < MAX_MEMORY);
    honest_transfer_succeeds(&serve);
    drop(raw);
    serve.interrupt();
}

/// A service with one client that has this quota, and the client's directory.
fn service(key: &Identity, quota: &str) -> (Serve, std::path::PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().to_owned();
    let (clients, directory) = (path.join("clients"), path.join("alice"));
    let line = format!(
        "{} alice dir={} quota={quota} rights=overwrite\n",
        key.public_key(),
        directory.display()
    );
    fs::write(&clients, line).unwrap();
    fs::set_permissions(&clients, fs::Permissions::from_mode(0o600)).unwrap();
    let mut command = Command::new(SWEETSPOT);
    command.args(["serve", "--listen", "127.0.0.1:0", "--clients"]).arg(clients);
    command.arg("--state").arg(path.join("state"));
    (Serve::spawn(scratch, &path, command), directory)
}

/// The disk space of a directory's files in bytes; a file with several names counts once.
fn on_disk(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).unwrap();
    let files: HashMap<u64, u64> = entries
        .map(|entry| entry.unwrap().metadata().unwrap())
        .map(|metadata| (metadata.ino(), metadata.blocks() * 512))
        .collect();
    files.values().sum()
}

/// Seven pieces are 1.8 MB.
const PIECES: u32 = 7;
const SIZE: u64 = PIECES as u64 * PIECE_BYTES;
const QUOTA: u64 = 2_000_000;

/// Sends pieces of several files, as far as the receiver accepts them, and disconnects once they have arrived.
fn leave_unfinished(mut raw: Raw, list: &[RawEntry], sent: &[u32]) {
    raw.entries(list);
    let mut open = Vec::new();
    while open.len() < list.len() {
        open.extend(answers(&mut raw).into_iter().map(|a| !matches!(a, Answer::Refused { .. })));
    }
    let content = vec![7; PIECE_BYTES as usize];
    for entry in (0..list.len()).filter(|entry| open[*entry]) {
        for piece in sent {
            let hash = piece_hash(*piece, false, &content);
            let _ = raw.try_send(&wire::piece(entry as u32, *piece, hash, &content));
        }
        // When all of these pieces have arrived, some are still missing, unless the receiver gave up before.
        let (size, pieces_sent) = (SIZE, sent.len() as u32);
        let end = FileEnd { entry: entry as u32, size, pieces_sent, hash: [0; 32] };
        let _ = raw.try_send(&Record::Ends(vec![end]).to_frame());
        raw.wait_for(|received| match received {
            Received::Record(Record::Results(results)) => {
                results.iter().any(|result| result.entry == entry as u32).then_some(())
            }
            _ => None,
        });
    }
}

/// A file with several names is replaced under each of them, but no new file is completed. The old file's space, counted
/// once per name, must not admit all of them.
#[test]
fn replacing_files_stays_within_the_quota() {
    let key = Identity::fresh();
    let (serve, directory) = service(&key, "2MB");
    let dial = Dial { identity: Some(&key), ..Dial::default() };
    let content = vec![1; SIZE as usize];
    let mut raw = Raw::accepted_as(&serve.ticket(), &dial);
    let links = (1..6).map(|n| (RawEntry::hard_link(format!("f{n}"), 0), None));
    let first = (RawEntry::file("f0", SIZE), Some(&content[..]));
    // The end is not in `bring`, because a file of several pieces needs it.
    let list: Vec<_> = std::iter::once(first).chain(links).collect();
    raw.entries(&list.iter().map(|(entry, _)| entry.clone()).collect::<Vec<_>>());
    raw.listed(6, 1, SIZE);
    assert_eq!(answers(&mut raw)[0], Answer::All);
    raw.content(0, &content).unwrap();
    let hash = *blake3::hash(&content).as_bytes();
    raw.ends(vec![FileEnd { entry: 0, size: SIZE, pieces_sent: PIECES, hash }]);
    raw.send_message(&sweetspot_protocol::Message::End);
    eventually("all names are there", || names(&directory).len() == 6);
    drop(raw);
    let later = |entry| RawEntry { modified: (1_800_000_000, 0), ..entry };
    let list: Vec<_> = (0..6).map(|n| later(RawEntry::file(format!("f{n}"), SIZE))).collect();
    let raw = Raw::accepted_as(&serve.ticket(), &dial);
    leave_unfinished(raw, &list, &(0..PIECES - 1).collect::<Vec<_>>());
    assert!(on_disk(&directory) <= QUOTA, "{} bytes", on_disk(&directory));
    assert_eq!(fs::read(directory.join("f5")).unwrap(), content, "what is there stays");
    serve.interrupt();
}

/// Sparse files are left unfinished, long and nearly empty: their length does not count as space that they already occupy.
#[test]
fn filling_holes_of_unfinished_files_counts_against_the_quota() {
    let key = Identity::fresh();
    let (serve, directory) = service(&key, "2MB");
    let dial = Dial { identity: Some(&key), ..Dial::default() };
    let list: Vec<_> = (0..6).map(|n| RawEntry::sparse(format!("f{n}"), SIZE)).collect();
    for entry in &list {
        let raw = Raw::accepted_as(&serve.ticket(), &dial);
        leave_unfinished(raw, std::slice::from_ref(entry), &[PIECES - 1]);
    }
    assert_eq!(names(&directory).len(), 6);
    let raw = Raw::accepted_as(&serve.ticket(), &dial);
    leave_unfinished(raw, &list, &(1..PIECES).collect::<Vec<_>>());
    assert!(on_disk(&directory) <= QUOTA, "{} bytes", on_disk(&directory));
    serve.interrupt();
}
