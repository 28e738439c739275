//! A hostile sender.

use std::collections::HashMap;
use std::fs::File;
use std::net::Shutdown;
use std::time::Duration;

use sweetspot_hostile_peer::{Raw, RawEntry, Received, entries, frame, piece};
use sweetspot_protocol::hash_tree::{
    MAX_FILE_BYTES, PIECE_BYTES, piece_hash, piece_length, pieces, root,
};
use sweetspot_protocol::record::{Answer, EntryKind, FileEnd, Record};
use sweetspot_protocol::{Message, Offer, Role, SenderLimit};

use super::choices::Choices;
use super::fixture::{Client, fixture};
use super::laws;

const NAMES: [&[u8]; 16] = [
    b"a",
    b"b",
    b"c",
    b"d",
    b"d/a",
    b"d/d/a",
    b"s0",
    b"s1",
    b"s2",
    b"s3",
    b"ln",
    b"ln/a",
    b"..",
    b"/a",
    b".x",
    b"\x1b[2J\n",
];
const SIZES: [u64; 12] = [
    1,
    1000,
    PIECE_BYTES,
    PIECE_BYTES + 1,
    600_000,
    0,
    2 << 20,
    64 << 20,
    1 << 40,
    1 << 50,
    MAX_FILE_BYTES,
    u64::MAX,
];
const MODES: [u32; 8] = [0o644, 0o755, 0o4755, 0o2755, 0o1777, 0o7777, 0o4_000_644, 0];
const TARGETS: [&[u8]; 6] = [b"a", b"d", b"/etc", b"../secret", b"d/../..", b"."];
/// Maximum number of bytes that one operation may send repeatedly.
const MAX_REPEATED: usize = 512 << 10;

/// Sessions of a hostile sender with one client's rights; the invariants are checked after each.
pub fn incoming(data: &[u8]) {
    let fixture = fixture();
    let _turn = fixture.turn();
    let mut choices = Choices(data);
    let client = choices.of(&[Client::Replacer, Client::Unbounded, Client::Writer]);
    client.clear();
    // Files that this client's earlier sessions may leave: holes, which use no quota.
    for name in ["s0", "s1", "s2", "s3"] {
        File::create(client.directory().join(name)).unwrap().set_len(PIECE_BYTES).unwrap();
    }
    while choices.are_left() {
        let session = Session::open(client, &mut choices);
        if let Some(mut session) = session {
            session.run(&mut choices);
            session.leave(&mut choices);
        }
        fixture.wait_until_idle();
        laws::check(client);
    }
}

/// A session with an accepted offer.
struct Session {
    raw: Raw,
    client: Client,
    /// The listed entries, as file lengths; `None` if not a file.
    listed: Vec<Option<u64>>,
    /// Pieces and holes sent for each entry.
    sent: HashMap<u32, u32>,
    last: Vec<u8>,
    closed: bool,
}

impl Session {
    fn open(client: Client, choices: &mut Choices<'_>) -> Option<Session> {
        let mut raw = client.connect();
        let hello = raw.hello_as(if choices.rarely() { Role::Receiver } else { Role::Sender });
        raw.try_send(&hello.to_frame()).ok()?;
        let flags = choices.byte();
        let offer = Message::Offer(Offer {
            name: "x".into(),
            one_file: flags & 1 > 0,
            many: flags & 2 == 0,
            checksum: flags & 12 == 12,
            dry_run: flags & 48 == 48,
            size: (flags & 64 > 0).then_some(choices.of(&SIZES)),
            sizing: Some("kernel".into()),
            streams: (flags & 128 > 0).then_some(u32::MAX),
            ..Offer::default()
        });
        let welcome = raw.next();
        if !matches!(welcome, Received::Message(Message::Welcome { .. })) {
            return None;
        }
        raw.try_send(&offer.to_frame()).ok()?;
        let accepted = matches!(raw.next(), Received::Message(Message::Accept(_)));
        let (listed, sent, last) = (Vec::new(), HashMap::new(), Vec::new());
        accepted.then_some(Session { raw, client, listed, sent, last, closed: false })
    }

    fn run(&mut self, choices: &mut Choices<'_>) {
        while choices.are_left() && !self.closed {
            match choices.byte() % 17 {
                0..=2 => self.list(choices),
                3..=5 => self.right_piece(choices),
                6 => self.odd_piece(choices),
                7 => self.holes(choices),
                8 => self.end_of_file(choices),
                9 => {
                    let entry = self.entry(choices);
                    self.send(Record::Gone { entry, reason: "\x1b[31mgone\n".into() }.to_frame());
                }
                10 => self.listed(choices),
                11 => {
                    self.listed(choices);
                    self.send(Message::End.to_frame());
                    self.send(Raw::sender_summary().to_frame());
                }
                12 => self.message(choices),
                13 => {
                    let (kind, body) = (choices.byte() % 4, choices.bytes(64));
                    self.send(frame(kind, &body));
                }
                14 => {
                    let times = (MAX_REPEATED / self.last.len().max(1)).min(256);
                    let again = self.last.repeat(times);
                    self.closed |= self.raw.try_send(&again).is_err();
                }
                16 => {
                    // The server accepts 64 KiB in total.
                    let entry = self.entry(choices);
                    let length = choices.of(&[999, 1, 0, 20_000, 65_536, 65_537]);
                    self.send(Record::Early { entry, content: vec![7; length] }.to_frame());
                }
                _ if choices.byte().is_multiple_of(4) => return,
                _ => self.join(choices),
            }
        }
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.closed |= self.raw.try_send(&bytes).is_err();
        self.last = bytes;
    }

    /// Lists up to four entries and waits for the replies: pieces sent before would be rejected.
    fn list(&mut self, choices: &mut Choices<'_>) {
        let list: Vec<RawEntry> = (0..1 + choices.below(4)).map(|_| entry(choices)).collect();
        self.listed.extend(list.iter().map(|entry| match entry.kind {
            EntryKind::File { size, .. } => Some(size),
            _ => None,
        }));
        self.send(entries(&list));
        if choices.rarely() {
            return;
        }
        let mut unanswered = list.len();
        while unanswered > 0 && !self.closed {
            match self.raw.next() {
                Received::Record(Record::Answers(answers)) => {
                    let hashes = |answer: &Answer| {
                        matches!(answer, Answer::Different { .. } | Answer::Compare { .. })
                    };
                    let _ = answers.iter().any(hashes);
                    unanswered = unanswered.saturating_sub(answers.len());
                }
                Received::Closed(_) | Received::Silent => self.closed = true,
                _ => {}
            }
        }
    }

    fn entry(&self, choices: &mut Choices<'_>) -> u32 {
        let entry = choices.below(self.listed.len().clamp(1, 255)) as u32;
        if choices.rarely() { u32::MAX } else { entry }
    }

    fn size(&self, entry: u32) -> u64 {
        self.listed.get(entry as usize).copied().flatten().unwrap_or(PIECE_BYTES)
    }

    /// A piece as an honest sender would send it.
    fn right_piece(&mut self, choices: &mut Choices<'_>) {
        let entry = self.entry(choices);
        let size = self.size(entry);
        let last = pieces(size).saturating_sub(1).min(u64::from(u32::MAX)) as u32;
        let number = choices.of(&[0, 0, 0, 1, 2, last]);
        let content = content(piece_length(size, number).min(PIECE_BYTES));
        if !content.is_empty() {
            let hash = piece_hash(number, pieces(size) == 1, &content);
            self.send(piece(entry, number, hash, &content));
            let sent = self.sent.entry(entry).or_default();
            *sent = sent.saturating_add(1);
        }
    }

    fn odd_piece(&mut self, choices: &mut Choices<'_>) {
        let entry = self.entry(choices);
        let number = choices.of(&[0, 1, 0xffff_fffe, u32::MAX]);
        let content = content(choices.of(&[1, 999, PIECE_BYTES]));
        let hash = match choices.byte() % 3 {
            0 => [0; 32],
            1 => piece_hash(number, false, &content),
            _ => piece_hash(number, true, &content),
        };
        self.send(piece(entry, number, hash, &content));
    }

    fn holes(&mut self, choices: &mut Choices<'_>) {
        let entry = self.entry(choices);
        let all = pieces(self.size(entry)).min(u64::from(u32::MAX)) as u32;
        let first = choices.of(&[0, 0, 1, all.saturating_sub(1), u32::MAX]);
        let count = choices.of(&[all, 1, 2, 0xffff, u32::MAX, 0]);
        self.send(Record::Holes { entry, first, pieces: count }.to_frame());
        let sent = self.sent.entry(entry).or_default();
        *sent = sent.saturating_add(count);
    }

    fn end_of_file(&mut self, choices: &mut Choices<'_>) {
        let entry = self.entry(choices);
        let size = choices.of(&[self.size(entry), 0, u64::MAX]);
        let count = pieces(size).min(u64::from(u32::MAX)) as u32;
        let sent = self.sent.get(&entry).copied().unwrap_or(0);
        let pieces_sent = choices.of(&[sent, sent, count, 0, u32::MAX]);
        let hash = match choices.byte() % 3 {
            0 if size <= 2 << 20 => *hash_of(size).as_bytes(),
            1 if size <= 2 << 20 => *blake3::hash(&vec![0; size as usize]).as_bytes(),
            _ => [0; 32],
        };
        self.send(Record::Ends(vec![FileEnd { entry, size, pieces_sent, hash }]).to_frame());
    }

    fn listed(&mut self, choices: &mut Choices<'_>) {
        let entries = self.listed.len() as u32;
        let entries = choices.of(&[entries, entries, entries, 0, u32::MAX]);
        let files = self.listed.iter().flatten().count() as u32;
        let bytes = choices.of(&[0, u64::MAX]);
        self.send(Record::Listed { entries, files, bytes, left_out: 0 }.to_frame());
    }

    fn message(&mut self, choices: &mut Choices<'_>) {
        let message = match choices.byte() % 6 {
            0 => Message::Busy,
            1 => Message::SenderLimit { by: SenderLimit::Losses, each_bps: Some(0) },
            2 => Message::SenderLimit { by: SenderLimit::SendBuffer, each_bps: Some(u64::MAX) },
            3 => Message::Failed { reason: "\x1b]0;failed\x07\n".into() },
            4 => sweetspot_hostile_peer::offer(),
            _ => Raw::accept(),
        };
        self.send(message.to_frame());
    }

    /// An additional connection, which sends a piece.
    fn join(&mut self, choices: &mut Choices<'_>) {
        let mut further = self.client.connect();
        further.transfer.clone_from(&self.raw.transfer);
        let hello = further.hello_with(Role::Sender, true, false);
        if further.try_send(&hello.to_frame()).is_err() {
            return;
        }
        let _ = further.next();
        let (entry, content) = (self.entry(choices), content(choices.of(&[1000, PIECE_BYTES])));
        let hash = piece_hash(0, true, &content);
        let _ = further.try_send(&piece(entry, 0, hash, &content));
    }

    /// Hangs up, at once or after reading the server's remaining messages.
    fn leave(mut self, choices: &mut Choices<'_>) {
        if choices.rarely() {
            return;
        }
        let _ = self.raw.socket().shutdown(Shutdown::Write);
        let _ = self.raw.socket().set_read_timeout(Some(Duration::from_millis(100)));
        self.raw.drain();
    }
}

fn entry(choices: &mut Choices<'_>) -> RawEntry {
    let size = choices.of(&SIZES);
    let kind = match choices.byte() % 9 {
        0..=2 => EntryKind::File { size, sparse: false },
        3 => EntryKind::File { size, sparse: true },
        4 => EntryKind::Stream,
        5 => EntryKind::Directory,
        6 => EntryKind::Symlink { target: choices.of(&TARGETS).to_vec() },
        7 => EntryKind::Special,
        _ => EntryKind::HardLink { to: u32::from(choices.byte() % 4) },
    };
    let attribute = |choices: &mut Choices<'_>| {
        let length = choices.of(&[1, 20, 60_000]);
        (choices.of(&laws::ATTRIBUTES).to_vec(), capability(length))
    };
    let attributes = (0..choices.of(&[0, 0, 0, 1, 2])).map(|_| attribute(choices)).collect();
    let modified =
        choices.of(&[(1_700_000_000, 0), (0, 0), (-1, 999_999_999), (i64::MAX, u32::MAX)]);
    RawEntry {
        mode: choices.of(&MODES),
        modified,
        attributes,
        ..RawEntry::new(choices.of(&NAMES), kind)
    }
}

/// The value of `security.capability` that grants all of cap_setuid, truncated or padded to `length`.
fn capability(length: usize) -> Vec<u8> {
    let words: [u32; 5] = [0x0200_0001, 0x80, 0, 0, 0];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(length, 0);
    bytes
}

fn content(length: u64) -> Vec<u8> {
    vec![7; length as usize]
}

/// The hash of a file with this content.
fn hash_of(size: u64) -> blake3::Hash {
    let count = pieces(size) as u32;
    let hash = |number| piece_hash(number, count == 1, &content(piece_length(size, number)));
    root(&(0..count).map(hash).collect::<Vec<_>>())
}
