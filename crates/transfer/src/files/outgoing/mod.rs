//! Outgoing files: answers the receiver's requests, and checks its results.

mod answers;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex};

use sweetspot_control::DryRunKind;
use sweetspot_protocol::record::{Entry, has_special_bits};
use sweetspot_protocol::{FileCounts, Printable, RelativePath};
use sweetspot_units::{Bytes, Rate, Time};

use crate::files::arriving_hashes::{ArrivingHashes, HashBudget, KnownHashes};
use crate::files::bounded_lines::BoundedLines;
use crate::files::failures::Failures;
use crate::files::packing::Meter;
use crate::files::source::{SourceFile, Undelivered};
use crate::files::would_move::DryRunList;
use crate::limits::{MAX_AHEAD, MAX_UNCONFIRMED};
use crate::lock::lock;
use crate::observer::{FileLog, FileRecord};
use crate::{Result, TransferError};

pub(crate) struct OutgoingFiles {
    dry_run: bool,
    log: Option<Arc<dyn FileLog>>,
    state: Mutex<OutgoingState>,
    changed: Condvar,
    hashes: Arc<HashBudget>,
}

/// The progress of a file that the receiver wants.
enum Stage {
    /// It waits to be read, or is being read.
    Requested,
    /// All of it was handed over, and the receiver has not confirmed it.
    Sent(Sent),
    /// This end reported that it cannot send it: the receiver's result adds nothing.
    Withheld,
    /// The receiver gave it up: nothing more of it is read.
    GivenUp,
}

struct Sent {
    hash: [u8; 32],
    /// Path and length, for an observer or a dry run.
    named: Option<(RelativePath, u64)>,
}

#[derive(Default)]
struct OutgoingState {
    /// How many entries were listed.
    listed: u64,
    /// Listed and not answered, in order.
    unanswered: VecDeque<Unanswered>,
    next_answer: u32,
    /// Content sent for entries that are not answered yet.
    early: HashMap<u32, Vec<u8>>,
    /// Where the receiver's hashes of the file go that it answered last.
    arriving: Option<ArrivingHashes>,
    /// Files that the receiver wants, until its result arrives.
    requested: HashMap<u32, Stage>,
    /// Empty files, for a log: their results alone tell that they were written.
    empty: HashMap<u32, RelativePath>,
    /// Entries that are listed and not yet answered and read.
    unresolved: u64,
    /// Buffers that are on their way to a connection.
    queued: u64,
    bytes: Bytes,
    /// Content that the receiver has already.
    present: Bytes,
    /// The frames that carry it, and the bytes that compression kept off the path.
    frames: Bytes,
    saved: Bytes,
    meter: Meter,
    files: u64,
    totals: Option<(u64, Bytes)>,
    failures: Failures,
    /// How many of them the receiver never heard of.
    unlisted: u64,
    /// Pipes, sockets and devices.
    skipped: BoundedLines,
    /// Files that grew while they were read.
    grown: BoundedLines,
    refused: bool,
    /// Files and directories with set-user-ID, set-group-ID or sticky bits.
    special_bits: u64,
    dry_run: DryRunList,
    /// Names that the receiver deleted, or would delete.
    deleted: BoundedLines,
    over: bool,
}

/// An entry that was listed.
#[derive(Clone)]
pub(crate) struct Unanswered {
    /// Its content, if it has any.
    pub file: Option<SourceFile>,
    /// Whether it is a file or a link, which both ends count.
    pub is_file: bool,
    /// Its path and kind for a dry run, if it has no content.
    pub name: Option<(RelativePath, DryRunKind)>,
}

/// A file that the receiver wants.
pub(crate) struct FileRequest {
    pub entry: u32,
    pub file: SourceFile,
    /// The hashes of the receiver's pieces.
    pub hashes: Option<KnownHashes>,
    /// Only the hash is wanted.
    pub compare_only: bool,
    /// How its first piece begins, where that was sent already; else empty.
    pub early: Vec<u8>,
}

impl OutgoingFiles {
    pub fn new(dry_run: bool, log: Option<Arc<dyn FileLog>>) -> OutgoingFiles {
        let (state, changed, hashes) = (Mutex::default(), Condvar::new(), Arc::default());
        OutgoingFiles { dry_run, log, state, changed, hashes }
    }

    fn log(&self, sent: Sent, outcome: Result<(), &str>) {
        if let (Some(log), Some((path, size))) = (&self.log, sent.named) {
            let outcome = outcome.map(|()| (blake3::Hash::from_bytes(sent.hash), !self.dry_run));
            log.file(&FileRecord::new(&path, Some(size), outcome));
        }
    }

    /// The list of a dry run.
    pub fn take_dry_run(&self) -> DryRunList {
        std::mem::take(&mut lock(&self.state).dry_run)
    }

    /// Notes entries that are about to be listed, waiting while the receiver is far behind. Returns false if the
    /// transfer is over.
    pub fn listing(&self, entries: impl ExactSizeIterator<Item = Unanswered>) -> bool {
        let mut state = lock(&self.state);
        let is_far_ahead = |state: &OutgoingState| {
            state.unresolved > MAX_AHEAD || state.requested.len() > MAX_UNCONFIRMED
        };
        while is_far_ahead(&state) && !state.over {
            state = wait(&self.changed, state);
        }
        state.listed += entries.len() as u64;
        state.unresolved += entries.len() as u64;
        state.unanswered.extend(entries);
        !state.over
    }

    /// Sends the beginnings of files that are about to be listed, right behind the list.
    pub fn send_early(&self, early: impl Iterator<Item = (u32, Vec<u8>)>) {
        lock(&self.state).early.extend(early);
    }

    pub fn listed(&self, files: u64, bytes: Bytes) {
        lock(&self.state).totals = Some((files, bytes));
    }

    /// Names that the receiver deleted, or would delete.
    pub fn deleted_names(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.state).deleted).into_lines()
    }

    /// All of a file is about to be handed over; the receiver's result will follow.
    pub fn sent(&self, entry: u32, file: &SourceFile, size: u64, hash: [u8; 32]) {
        let named = (self.dry_run || self.log.is_some()).then(|| (file.path().clone(), size));
        if let Some(stage @ Stage::Requested) = lock(&self.state).requested.get_mut(&entry) {
            *stage = Stage::Sent(Sent { hash, named });
        }
    }

    /// A file that the receiver wants cannot be sent.
    pub fn withhold(&self, entry: u32, file: &SourceFile, why: &Undelivered) {
        let reason = why.here(&file.shown());
        if let Some(log) = &self.log {
            log.file(&FileRecord::new(file.path(), file.size(), Err(&reason)));
        }
        let mut state = lock(&self.state);
        state.failures.add(reason);
        if let Some(stage) = state.requested.get_mut(&entry) {
            *stage = Stage::Withheld;
        }
    }

    /// Something cannot be sent, for this reason.
    pub fn left_out(&self, reason: String) {
        let mut state = lock(&self.state);
        state.unlisted += 1;
        state.failures.add(reason);
    }

    /// A pipe, a socket or a device was listed, which is not moved.
    pub fn skipped(&self, path: &RelativePath) {
        lock(&self.state).skipped.add(path.to_string());
    }

    /// Counts the special bits of a listed entry, which no receiver sets.
    pub fn note_special_bits(&self, entry: &Entry) {
        lock(&self.state).special_bits += u64::from(has_special_bits(entry));
    }

    /// How many files and directories had such bits.
    pub fn special_bits(&self) -> u64 {
        lock(&self.state).special_bits
    }

    /// A file grew while it was read, and was sent with its listed length.
    pub fn grew(&self, file: &SourceFile) {
        lock(&self.state).grown.add(Printable(&file.shown()).to_string());
    }

    /// The names of files that grew.
    pub fn grown_names(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.state).grown).into_lines()
    }

    /// The names of pipes, sockets and devices.
    pub fn skipped_names(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.state).skipped).into_lines()
    }

    /// Waits until everything that the receiver wanted was handed to the kernel. Returns false if the transfer ended
    /// early.
    pub fn wait_until_sent(&self) -> bool {
        let mut state = lock(&self.state);
        while (state.unresolved > 0 || state.queued > 0) && !state.over {
            state = wait(&self.changed, state);
        }
        !state.over
    }

    pub fn end(&self) {
        let mut state = lock(&self.state);
        state.over = true;
        state.arriving = None;
        self.hashes.end();
        self.changed.notify_all();
    }

    /// Content already handed to the kernel, or being handed over; the number of complete files at the receiver; and the total.
    pub fn so_far(&self) -> (Bytes, u64, Option<(u64, Bytes)>) {
        let state = lock(&self.state);
        (state.bytes, state.files, state.totals)
    }

    /// Content that the receiver has already.
    pub fn present(&self) -> Bytes {
        lock(&self.state).present
    }

    /// The receiver has `length` more bytes of content already.
    pub fn note_present(&self, length: u64) {
        lock(&self.state).present += Bytes::new(length);
    }

    /// The content that the receiver's kernel has, when it has acknowledged `acked` bytes of all connections.
    pub fn acknowledged(&self, acked: Bytes) -> Bytes {
        let state = lock(&self.state);
        let share = acked.as_f64() / state.frames.as_f64().max(1.0);
        (acked + state.saved.scaled(share.min(1.0))).min(state.bytes)
    }

    /// Bytes that compression kept off the path.
    pub fn saved(&self) -> Bytes {
        lock(&self.state).saved
    }

    /// The rate of all connections together, once it is known.
    pub fn carried(&self) -> Option<Rate> {
        lock(&self.state).meter.rate()
    }

    /// A buffer of `length` bytes with this much content is about to be written to a connection.
    pub fn writing(&self, content: Bytes, length: usize) {
        let (mut state, length) = (lock(&self.state), Bytes::new(length as u64));
        state.bytes += content;
        state.frames += length;
        state.saved += content.saturating_sub(length);
    }

    /// That buffer was written, `length` bytes by `now`.
    pub fn written(&self, now: Time, length: usize) {
        let mut state = lock(&self.state);
        state.meter.note(now, Bytes::new(length as u64));
        state.queued -= 1;
        if state.queued == 0 {
            self.changed.notify_all();
        }
    }

    /// The end of the transfer, given the receiver's `counts`: the files not sent, or the error if nothing was.
    pub fn conclude(&self, counts: &mut FileCounts) -> Result<Vec<String>> {
        let state = lock(&self.state);
        let unconfirmed = state.requested.values().filter(|stage| matches!(stage, Stage::Sent(_)));
        let unconfirmed = unconfirmed.count();
        if unconfirmed > 0 {
            return Err(TransferError::Unconfirmed(unconfirmed));
        }
        counts.failed = counts.failed.max(state.failures.count);
        let moves_nothing = counts.present() == 0 && state.dry_run.is_empty();
        let failures = state.failures.lines.clone();
        match failures.as_slice() {
            [reason] if moves_nothing && state.refused && counts.failed == 1 => {
                Err(TransferError::Refused(reason.as_str().into()))
            }
            [_, ..] if moves_nothing => {
                let (count, by_peer) = (counts.failed, state.refused);
                Err(TransferError::NothingMoved { failures, count, by_peer })
            }
            _ => Ok(failures),
        }
    }

    /// Whether the receiver refused anything.
    pub fn some_refused(&self) -> bool {
        lock(&self.state).refused
    }

    /// How many entries were never listed, because this end cannot send them.
    pub fn unlisted(&self) -> u64 {
        lock(&self.state).unlisted
    }

    /// Whether nothing more of a file is wanted.
    pub fn is_given_up(&self, entry: u32) -> bool {
        let state = lock(&self.state);
        state.over || matches!(state.requested.get(&entry), Some(Stage::GivenUp))
    }

    /// Whether the transfer is over, so that nothing more is sent.
    pub fn is_over(&self) -> bool {
        lock(&self.state).over
    }

    /// A buffer with content is about to be handed over.
    pub fn queue(&self) {
        lock(&self.state).queued += 1;
    }

    /// A file that was wanted is read.
    pub fn resolved(&self, entry: u32) {
        let mut state = lock(&self.state);
        state.unresolved -= 1;
        let before = state.requested.len();
        if matches!(state.requested.get(&entry), Some(Stage::GivenUp)) {
            state.requested.remove(&entry);
        }
        let confirmed = before > MAX_UNCONFIRMED && state.requested.len() <= MAX_UNCONFIRMED;
        // Waking waiting threads takes a system call: only if their condition holds.
        if state.unresolved == 0 || state.unresolved == MAX_AHEAD || confirmed {
            self.changed.notify_all();
        }
    }
}

fn wait<'a>(
    changed: &Condvar,
    state: std::sync::MutexGuard<'a, OutgoingState>,
) -> std::sync::MutexGuard<'a, OutgoingState> {
    changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_protocol::record::{Answer, FileResult};

    use crate::files::source::{Listed, SourceList, Sources};

    /// The one file of a directory, as it is listed.
    fn listed() -> (tempfile::TempDir, SourceFile) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "content").unwrap();
        let sources = Sources { paths: vec![dir.path().join("f")], ..Sources::default() };
        let mut file = None;
        let take = |item| {
            if let Listed::Entry(_, listed) = item {
                file = listed;
            }
            Ok(())
        };
        SourceList::new(&sources).unwrap().list(take).unwrap();
        (dir, file.unwrap())
    }

    fn with_content(file: &SourceFile) -> Unanswered {
        Unanswered { file: Some(file.clone()), is_file: true, name: None }
    }

    fn without_content() -> Unanswered {
        Unanswered { file: None, is_file: false, name: None }
    }

    /// All listed files are wanted and sent, and none is confirmed.
    #[test]
    fn a_receiver_that_confirms_nothing_uses_bounded_memory() {
        let (_dir, file) = listed();
        let files = OutgoingFiles::new(false, None);
        let (requests, requested) = crossbeam_channel::unbounded();
        let confirmed = |entry| FileResult { entry, outcome: Ok([7; 32]) };
        std::thread::scope(|scope| {
            let (files, file) = (&files, &file);
            // One more than is kept: the listing after it waits.
            let limit = MAX_UNCONFIRMED as u32 + 1;
            for first in (0..limit).step_by(512) {
                let count = 512.min(limit - first) as usize;
                assert!(files.listing(vec![with_content(file); count].into_iter()));
                files.answered(vec![Answer::All; count], &requests).unwrap();
                for request in requested.try_iter().flatten() {
                    files.sent(request.entry, &request.file, 7, [7; 32]);
                    files.resolved(request.entry);
                }
            }
            let next = scope.spawn(|| files.listing([without_content()].into_iter()));
            // An entry that was confirmed makes room for it.
            assert_eq!(lock(&files.state).listed, u64::from(limit), "it waits, or has not begun");
            files.results(vec![confirmed(0)]).unwrap();
            assert!(next.join().unwrap());
            assert_eq!(lock(&files.state).requested.len(), MAX_UNCONFIRMED);
            assert!(files.results(vec![confirmed(limit + 1)]).is_err(), "never listed");
        });
    }

    /// A file that the receiver gives up before it was sent is remembered only until it was read.
    #[test]
    fn files_that_the_receiver_gives_up_are_forgotten() {
        let (_dir, file) = listed();
        let files = OutgoingFiles::new(false, None);
        let (requests, _wanted) = crossbeam_channel::unbounded();
        assert!(files.listing([with_content(&file), without_content()].into_iter()));
        files.answered(vec![Answer::All], &requests).unwrap();
        let given_up = |entry| FileResult { entry, outcome: Err("enough".into()) };
        assert!(!files.is_given_up(0));
        for _ in 0..1000 {
            files.results(vec![given_up(0), given_up(1)]).unwrap();
        }
        assert!(files.is_given_up(0));
        files.sent(0, &file, 7, [7; 32]);
        assert!(files.is_given_up(0), "it does not become unconfirmed");
        files.resolved(0);
        assert!(lock(&files.state).requested.is_empty());
    }

    /// The receiver hears why a file is gone, says so itself, and it counts once.
    #[test]
    fn a_file_that_cannot_be_sent_counts_as_one_failure() {
        let (_dir, file) = listed();
        let files = OutgoingFiles::new(false, None);
        let (requests, _wanted) = crossbeam_channel::unbounded();
        assert!(files.listing([with_content(&file)].into_iter()));
        files.answered(vec![Answer::All], &requests).unwrap();
        files.withhold(0, &file, &Undelivered::Changed);
        files.resolved(0);
        let outcome = Err("it kept changing".into());
        files.results(vec![FileResult { entry: 0, outcome }]).unwrap();
        let mut counts = FileCounts { written: 1, ..FileCounts::default() };
        let lines = files.conclude(&mut counts).unwrap();
        assert_eq!((counts.failed, lines.len()), (1, 1), "{lines:?}");
        assert!(lines[0].contains("/f kept changing"), "{lines:?}");
    }
}
