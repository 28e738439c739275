//! Invariants that hold whatever a sender does.

mod early;
mod in_the_way;

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use proptest::prelude::*;
use sweetspot_protocol::Offer;
use sweetspot_protocol::frame::PieceHeader;
use sweetspot_protocol::hash_tree::{
    PIECE_BYTES, PieceHash, piece_hash, piece_length, pieces, root,
};
use sweetspot_protocol::record::{Entry, EntryKind, FileEnd};

use super::*;
use crate::files::quota::QuotaTable;

const QUOTA: u64 = 2 << 20;
/// Files: empty, small, one piece, slightly more, and several pieces; together far more than the quota.
const SIZES: [u64; 7] =
    [0, 1, 5000, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES - 7, 7 * PIECE_BYTES];
/// `d` is also the directory's name.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "d/e", "d/f"];

/// A sender that does not read its answers.
struct Deaf;

impl Answers for Deaf {
    fn send_record(&self, _record: &Record) -> Result<()> {
        Ok(())
    }
}

/// A policy that replaces existing files of any kind.
const REPLACING: Policy = Policy {
    replace: true,
    other_kinds: true,
    leave: false,
    checksum: false,
    dry_run: false,
    attributes: false,
    exact_attributes: false,
    owners: false,
    dotfiles: true,
    outward_links: true,
};

/// The receiver of a transfer into `directory`.
fn incoming(directory: &Path, quota: Option<Arc<Quota>>, policy: Policy) -> IncomingFiles {
    let target = TargetDirectory::open(directory, View::default()).unwrap();
    let destination = Destination::Directory { target, top: Top::Sent };
    let bounds = Bounds { quota, ..Bounds::default() };
    let expected = RequestedSources::Anything.expect(&Offer::default()).unwrap();
    IncomingFiles::new(destination, policy, bounds, expected)
}

/// One transfer and its list: the length of each file, and the sender's data.
struct Sender {
    files: IncomingFiles,
    sizes: Vec<u64>,
    checksum: bool,
}

#[derive(Debug, Clone)]
enum Step {
    Directory,
    Symlink(usize),
    HardLink(usize, usize),
    File {
        name: usize,
        size: usize,
        sparse: bool,
    },
    Stream {
        name: usize,
    },
    /// Sends pieces of one of the listed files, each as a hole or with content that begins with a byte, and possibly its end.
    Send {
        file: usize,
        holes: u8,
        byte: u8,
        count: u32,
        ends: bool,
    },
    Holes {
        file: usize,
        first: u32,
        count: u32,
    },
    Gone(usize),
    /// The transfer ends normally, and another one begins.
    Complete,
    /// The path breaks, and another transfer begins.
    Break {
        checksum: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES.len();
    let file = || 0usize..8;
    prop_oneof![
        1 => Just(Step::Directory),
        1 => name().prop_map(Step::Symlink),
        1 => (name(), file()).prop_map(|(name, to)| Step::HardLink(name, to)),
        6 => (name(), 0..SIZES.len(), any::<bool>())
            .prop_map(|(name, size, sparse)| Step::File { name, size, sparse }),
        1 => name().prop_map(|name| Step::Stream { name }),
        9 => (file(), any::<u8>(), any::<u8>(), 0u32..9, any::<bool>())
            .prop_map(|(file, holes, byte, count, ends)| Step::Send { file, holes, byte, count, ends }),
        1 => (file(), 0u32..8, 0u32..8)
            .prop_map(|(file, first, count)| Step::Holes { file, first, count }),
        1 => file().prop_map(Step::Gone),
        1 => Just(Step::Complete),
        2 => any::<bool>().prop_map(|checksum| Step::Break { checksum }),
    ]
}

impl Sender {
    fn new(quotas: &QuotaTable, directory: &Path, checksum: bool) -> Sender {
        let quota = Some(quotas.of(directory, Bytes::new(QUOTA)).unwrap());
        let files = incoming(directory, quota, Policy { checksum, ..REPLACING });
        Sender { files, sizes: Vec::new(), checksum }
    }

    fn list(&mut self, path: &str, kind: EntryKind) {
        let number = self.sizes.len() as u32;
        self.sizes.push(match kind {
            EntryKind::File { size, .. } => size,
            _ => 3 * PIECE_BYTES - 7,
        });
        let entry = Entry {
            path: RelativePath::new(path).unwrap(),
            kind,
            // The mode lets directories be read without root.
            mode: 0o755,
            modified: (i64::from(number), 0),
            owner: None,
            attributes: Vec::new(),
        };
        self.files.plan(number, vec![entry], &Deaf).unwrap();
    }

    fn job(&self, job: Job) {
        let (jobs, queued_jobs) = crossbeam_channel::unbounded();
        jobs.send(job).unwrap();
        drop(jobs);
        // An error ends the transfer, which another step checks.
        let _ = self.files.work(&queued_jobs, &crossbeam_channel::unbounded().0);
        self.files.hash_waiting_holes();
    }

    fn send(&self, number: usize, holes: u8, byte: u8, count: u32, ends: bool) {
        let Some(size) = self.sizes.get(number).copied() else { return };
        let (entry, all) = (number as u32, pieces(size) as u32);
        let mut hashes: Vec<PieceHash> = Vec::new();
        for piece in 0..all {
            let mut content = vec![byte | 1; piece_length(size, piece) as usize];
            let is_hole = holes >> (piece % 8) & 1 == 1;
            if is_hole {
                content.fill(0);
            }
            let hash = piece_hash(piece, all == 1, &content);
            hashes.push(hash);
            if piece >= count {
                continue;
            }
            if is_hole {
                self.job(Job::Holes(entry, piece, 1));
            } else {
                let header = PieceHeader { entry, piece, hash, length: content.len() as u32 };
                self.job(Job::Piece(header, content));
            }
        }
        if ends {
            let hash = *root(&hashes).as_bytes();
            let end = FileEnd { entry, size, pieces_sent: count.min(all), hash };
            let _ = self.files.take_end(&end);
            self.files.hash_waiting_holes();
        }
    }

    fn step(&mut self, quotas: &QuotaTable, directory: &Path, step: Step) {
        match step {
            Step::Directory => self.list("d", EntryKind::Directory),
            Step::Symlink(name) => {
                self.list(NAMES[name], EntryKind::Symlink { target: vec![b'x'; 300] });
            }
            Step::HardLink(name, to) if to < self.sizes.len() => {
                self.list(NAMES[name], EntryKind::HardLink { to: to as u32 });
            }
            Step::File { name, size, sparse } => {
                self.list(NAMES[name], EntryKind::File { size: SIZES[size], sparse });
            }
            Step::Stream { name } => self.list(NAMES[name], EntryKind::Stream),
            Step::Send { file, holes, byte, count, ends } => {
                self.send(file, holes, byte, count, ends);
            }
            Step::Holes { file, first, count } => self.job(Job::Holes(file as u32, first, count)),
            Step::Gone(file) => drop(self.files.handle_gone(file as u32, &"it is gone".into())),
            Step::Complete => {
                self.files.complete().unwrap();
                *self = Sender::new(quotas, directory, self.checksum);
            }
            Step::Break { checksum } => *self = Sender::new(quotas, directory, checksum),
            Step::HardLink(..) => {}
        }
    }
}

/// The disk space of a directory's contents, as du(1) counts it.
fn on_disk(directory: &Path, seen: &mut HashSet<u64>) -> u64 {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let sizes = entries.map(|entry| {
        let metadata = entry.metadata().unwrap();
        let below = if metadata.is_dir() { on_disk(&entry.path(), seen) } else { 0 };
        below + if seen.insert(metadata.ino()) { metadata.blocks() * 512 } else { 0 }
    });
    sizes.sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Two transfers into one directory interleave arbitrary steps: they list, send in any order, make and fill holes, replace,
    /// link, resume, and break.
    #[test]
    fn disk_usage_never_exceeds_the_quota(
        steps in proptest::collection::vec((any::<bool>(), step()), 1..60),
    ) {
        let scratch = tempfile::tempdir().unwrap();
        let quotas = QuotaTable::default();
        let mut senders = [false, true].map(|checksum| {
            Sender::new(&quotas, scratch.path(), checksum)
        });
        for (which, step) in steps {
            let shown = format!("{step:?}");
            senders[usize::from(which)].step(&quotas, scratch.path(), step);
            let held = on_disk(scratch.path(), &mut HashSet::new());
            prop_assert!(held <= QUOTA, "{held} bytes after {shown}");
        }
    }
}

/// A sparse file of one piece is written without a partial file, so its pieces reserve quota one by one.
#[test]
fn sparse_files_of_one_piece_use_quota() {
    let scratch = tempfile::tempdir().unwrap();
    let quotas = QuotaTable::default();
    let mut sender = Sender::new(&quotas, scratch.path(), false);
    let max = QUOTA / PIECE_BYTES;
    for number in 0..2 * max {
        sender.list(&format!("{number}"), EntryKind::File { size: PIECE_BYTES, sparse: true });
        sender.send(number as usize, 0, 1, 1, true);
    }
    // Each also needs space for its name, so one fewer fits than the quota divided by their size.
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count() as u64, max - 1);
    assert!(on_disk(scratch.path(), &mut HashSet::new()) <= QUOTA);
}

/// A hole uses no more quota than its name.
#[test]
fn sparse_files_of_one_hole_release_their_quota() {
    let scratch = tempfile::tempdir().unwrap();
    let quotas = QuotaTable::default();
    let mut sender = Sender::new(&quotas, scratch.path(), false);
    for number in 0..2 * QUOTA / PIECE_BYTES {
        sender.list(&format!("{number}"), EntryKind::File { size: PIECE_BYTES, sparse: true });
        sender.send(number as usize, 1, 0, 1, true);
    }
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count() as u64, 2 * QUOTA / PIECE_BYTES);
}

/// A sender opens files and lets them fail repeatedly. The record of them does not grow with their number.
#[test]
fn the_record_of_closed_files_is_bounded() {
    let scratch = tempfile::tempdir().unwrap();
    let mut sender = Sender::new(&QuotaTable::default(), scratch.path(), false);
    for number in 0..20_000 {
        sender.list("a", EntryKind::File { size: 2 * PIECE_BYTES, sparse: true });
        sender.files.handle_gone(number, &"x".repeat(10_000).into()).unwrap();
    }
    let results = sender.files.results();
    assert_eq!(results.len(), 20_000);
    let lengths = results.iter().filter_map(|result| result.outcome.as_ref().err());
    let longest = lengths.map(|reason| reason.raw().len());
    assert!(longest.max().is_none_or(|length| length <= crate::limits::MAX_REASON_BYTES + 4));
    let state = lock(&sender.files.state);
    assert_eq!((state.open.len(), state.open_bytes), (0, 0));
    assert!(state.failures.lines.iter().all(|line| line.len() < 1000));
}

/// Files of terabytes with many holes: runs are counted, and forgotten with their files.
#[test]
fn hole_runs_are_limited_over_all_open_files() {
    let scratch = tempfile::tempdir().unwrap();
    let mut sender = Sender::new(&QuotaTable::default(), scratch.path(), false);
    let max = crate::limits::MAX_HOLE_RUNS as u32;
    for name in NAMES.iter().take(3) {
        let size = crate::limits::MAX_SPARSE_BYTES;
        sender.list(name, EntryKind::File { size, sparse: true });
    }
    let is_open = |file: u32| lock(&sender.files.state).open.contains_key(&file);
    let (jobs, queued_jobs) = crossbeam_channel::unbounded();
    for file in 0..2 {
        for run in 0..max * 5 / 8 {
            jobs.send(Job::Holes(file, 2 * run, 1)).unwrap();
        }
    }
    drop(jobs);
    sender.files.end();
    sender.files.work(&queued_jobs, &crossbeam_channel::unbounded().0).unwrap();
    assert!(is_open(0) && !is_open(1), "the second file is one too many");
    sender.job(Job::Holes(2, 0, 1));
    assert!(is_open(2), "what was given up counts no longer");
}

/// A directory with contents keeps its name, so the file that needs that name stays unfinished. A later transfer can resume it,
/// so it keeps its quota.
#[test]
fn a_file_that_cannot_get_its_name_keeps_its_quota() {
    let scratch = tempfile::tempdir().unwrap();
    let quotas = QuotaTable::default();
    let mut sender = Sender::new(&quotas, scratch.path(), false);
    sender.list("d", EntryKind::File { size: 7 * PIECE_BYTES, sparse: false });
    fs::create_dir_all(scratch.path().join("d/e")).unwrap();
    sender.send(0, 0, 1, 7, true);
    let held = on_disk(scratch.path(), &mut HashSet::new());
    assert!(held > 7 * PIECE_BYTES, "{held} bytes");
    let quota = quotas.of(scratch.path(), Bytes::new(QUOTA)).unwrap();
    assert!(quota.used().get() >= 7 * PIECE_BYTES, "{}", quota.used());
}
