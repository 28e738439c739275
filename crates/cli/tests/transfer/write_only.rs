//! A client with write access but no read access learns nothing about files of others.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use sweetspot_hostile_peer::{Dial, Identity, Raw, RawEntry, Received};
use sweetspot_protocol::hash_tree::PIECE_BYTES;
use sweetspot_protocol::record::{Answer, Record};
use sweetspot_protocol::{Message, Offer};

use crate::running::{SWEETSPOT, Serve, eventually, names};

/// A service with two clients of the same directory, which contains another user's file.
struct Shared {
    serve: Serve,
    directory: PathBuf,
    clients: [Identity; 2],
}

const SECRET_BYTES: u64 = 300_000;

impl Shared {
    fn start(rights: &str) -> Shared {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("shared");
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("secret"), vec![7; SECRET_BYTES as usize]).unwrap();
        let clients = [Identity::fresh(), Identity::fresh()];
        let line = |name: &str, client: &Identity| {
            let key = client.public_key();
            format!("{key} {name} dir={} rights={rights}\n", directory.display())
        };
        let text = line("alice", &clients[0]) + &line("bob", &clients[1]);
        let file = scratch.path().join("clients");
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let mut command = Command::new(SWEETSPOT);
        command.args(["serve", "--listen", "127.0.0.1:0", "--clients"]).arg(&file);
        command.arg("--state").arg(scratch.path().join("state"));
        let path = scratch.path().to_owned();
        Shared { serve: Serve::spawn(scratch, &path, command), directory, clients }
    }

    fn connect(&self, client: usize, offer: &Message) -> Raw {
        let dial = Dial { identity: Some(&self.clients[client]), ..Dial::default() };
        let mut raw = Raw::dial(&self.serve.ticket(), &dial).unwrap();
        raw.send_message(&raw.hello());
        raw.offer(offer);
        raw
    }

    /// The answer for one entry, and whether hashes follow it.
    fn answer(&self, client: usize, offer: &Message, entry: RawEntry) -> (Answer, bool) {
        let mut raw = self.connect(client, offer);
        raw.entries(&[entry]);
        let answer = raw.wait_for(|received| match received {
            Received::Record(Record::Answers(answers)) => answers.first().cloned(),
            _ => None,
        });
        // Hashes would precede the answer for a second entry.
        raw.entries(&[RawEntry::hard_link("second", 0)]);
        let hashes = raw.wait_for(|received| match received {
            Received::Record(Record::Hashes { .. }) => Some(true),
            Received::Record(Record::Answers(_)) => Some(false),
            _ => None,
        });
        (answer, hashes)
    }

    /// Sends one small file completely.
    fn send_all(&self, client: usize, entry: RawEntry, content: &[u8]) {
        self.connect(client, &offer()).send_all(&[(entry, Some(content))]);
    }
}

/// An entry with the length and time of `path`.
fn same_as(path: &Path, name: &str) -> RawEntry {
    let status = fs::metadata(path).unwrap();
    let modified = (status.mtime(), status.mtime_nsec() as u32);
    RawEntry { modified, ..RawEntry::file(name, status.len()) }
}

/// An offer of several items, so that more than one record of entries may follow.
fn offer() -> Message {
    Raw::offer_many()
}

fn by_content() -> Message {
    let Message::Offer(offer) = offer() else { unreachable!() };
    Message::Offer(Offer { checksum: true, ..offer })
}

fn rehearsed() -> Message {
    let Message::Offer(offer) = offer() else { unreachable!() };
    Message::Offer(Offer { dry_run: true, ..offer })
}

#[test]
fn the_right_to_write_reveals_nothing_about_an_existing_file() {
    let shared = Shared::start("write");
    let secret = shared.directory.join("secret");
    let guesses = [
        same_as(&secret, "secret"),
        RawEntry::file("secret", SECRET_BYTES),
        RawEntry::file("secret", SECRET_BYTES - 1),
        RawEntry::file("secret", 0),
        RawEntry::directory("secret"),
        RawEntry::file("secret/below", 1),
        RawEntry::symlink("secret", "x"),
    ];
    let mut reasons = Vec::new();
    for offer in [offer(), by_content(), rehearsed()] {
        for guess in &guesses {
            // A dry run creates nothing, so it gives no results for directories, links and files below
            // them.
            let rehearsed = matches!(&offer, Message::Offer(offer) if offer.dry_run);
            if rehearsed && (!guess.kind.has_content() || guess.path.contains(&b'/')) {
                continue;
            }
            let (answer, hashes) = shared.answer(0, &offer, guess.clone());
            assert!(!hashes);
            match answer {
                Answer::Refused { reason } => {
                    reasons.push(reason.to_string().replace("/below", ""))
                }
                other => panic!("{guess:?}: {other:?}"),
            }
        }
    }
    reasons.dedup();
    assert_eq!(reasons.len(), 1, "a refusal tells guesses apart: {reasons:?}");
    assert!(reasons[0].contains("already exists"), "{reasons:?}");
    assert_eq!(names(&shared.directory), ["secret"]);
}

#[test]
fn the_right_to_overwrite_reveals_nothing_about_the_replaced_file() {
    let shared = Shared::start("overwrite");
    let secret = shared.directory.join("secret");
    for offer in [offer(), by_content()] {
        for guess in [same_as(&secret, "secret"), RawEntry::file("secret", SECRET_BYTES)] {
            assert_eq!(shared.answer(0, &offer, guess), (Answer::All, false));
        }
    }
    assert_eq!(fs::metadata(&secret).unwrap().len(), SECRET_BYTES);
}

#[test]
fn the_right_to_read_reveals_existing_files() {
    let shared = Shared::start("read,write");
    let secret = shared.directory.join("secret");
    let same = same_as(&secret, "secret");
    assert_eq!(shared.answer(0, &offer(), same), (Answer::Nothing, false));
    let (answer, hashes) = shared.answer(0, &offer(), RawEntry::file("secret", SECRET_BYTES));
    assert_eq!((answer, hashes), (Answer::Compare { pieces: 2 }, true));
}

#[test]
fn only_the_client_that_sent_a_file_learns_that_it_exists() {
    let shared = Shared::start("write");
    let mine = || RawEntry::file("mine", 3);
    shared.send_all(0, mine(), b"abc");
    assert_eq!(shared.answer(0, &offer(), mine()), (Answer::Nothing, false));
    assert!(matches!(shared.answer(1, &offer(), mine()), (Answer::Refused { .. }, false)));
    // Once somebody else has changed the file, it no longer belongs to the client.
    fs::write(shared.directory.join("mine"), "another length").unwrap();
    let now = same_as(&shared.directory.join("mine"), "mine");
    assert!(matches!(shared.answer(0, &offer(), now), (Answer::Refused { .. }, false)));
}

#[test]
fn only_the_client_that_left_a_partial_file_sees_its_hashes() {
    let shared = Shared::start("write");
    let large = || RawEntry::file("large", 3 * PIECE_BYTES);
    let mut raw = shared.connect(0, &offer());
    raw.entries(&[large()]);
    raw.next_record();
    raw.content(0, &vec![7; 2 * PIECE_BYTES as usize]).unwrap();
    let partial = || names(&shared.directory).into_iter().find(|name| name != "secret");
    let length = |name: &String| fs::metadata(shared.directory.join(name)).unwrap().len();
    eventually("two pieces are written", || {
        partial().is_some_and(|name| length(&name) == 2 * PIECE_BYTES)
    });
    drop(raw);
    eventually("its writer has closed it", || {
        matches!(shared.answer(0, &offer(), large()), (Answer::Different { pieces: 2 }, true))
    });
    assert_eq!(shared.answer(1, &offer(), large()), (Answer::All, false));
}
