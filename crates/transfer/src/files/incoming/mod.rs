//! Incoming files: decides which content to ask for, places pieces, and reports results.

mod asked;
mod destination;
mod entry_queue;
mod file;
mod holes;
mod kept;
#[cfg(test)]
mod laws;
mod name_list;
mod pieces;
mod plan;
mod prune;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use sweetspot_protocol::hash_tree::PIECE_BYTES;
use sweetspot_protocol::record::{FileResult, Record};
use sweetspot_protocol::{FileCounts, ProtocolError, RelativePath};
use sweetspot_units::Bytes;

use crate::TransferError;
use crate::files::accounts::Accounts;
use crate::files::bounded_lines::BoundedLines;
use crate::files::failures::Failures;
use crate::files::provenance::View;
use crate::files::quota::{Quota, room_of, room_on_disk};
use crate::files::target::status::set_owner_mode_and_time;
use crate::files::target::{self, TargetDirectory};
use crate::files::temp_file::Keep;
use crate::limits::MAX_OPEN_BYTES;
use crate::lock::lock;
use crate::observer::{FileLog, FileRecord};
use crate::wire::channel::Channel;
pub(crate) use asked::Expected;
pub use asked::{Asked, NamedThings, Nameless};
pub(crate) use entry_queue::EntryQueue;
use file::{Content, IncomingFile};
use holes::HoleWork;
use kept::{ComparedFiles, LateDirectory, MadeDirectories, NumberSet, shortened};
use name_list::{Announced, NameList};
pub(crate) use pieces::Job;
pub use prune::Delete;
pub(crate) use prune::Deletion;
use prune::Pruning;

/// Where records for the sender go.
pub(crate) trait Answers: Sync {
    /// Sends one record. Waits while the sender does not read.
    fn tell(&self, record: &Record) -> Result<(), TransferError>;
}

impl Answers for Channel {
    fn tell(&self, record: &Record) -> Result<(), TransferError> {
        Channel::tell(self, record)
    }
}

/// Where content goes.
pub(crate) enum Destination {
    /// Into files below a directory. With a name, the one thing at the top gets that name.
    Directory { target: TargetDirectory, top_name: Option<Vec<u8>> },
    /// To standard output: one file.
    Output,
}

/// How existing files are treated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    /// Whether to replace them.
    pub replace: bool,
    /// Whether to compare contents where length and time are the same.
    pub checksum: bool,
    /// Whether this is a dry run.
    pub dry_run: bool,
    /// Whether extended attributes (`user.*`) are accepted.
    pub attributes: bool,
    /// Whether owners are accepted.
    pub owners: bool,
    /// Whether names that begin with a dot may come into any directory, not only into those that transfers made.
    pub dotfiles: bool,
    /// Whether symbolic links may lead out of the directory.
    pub outward_links: bool,
}

/// The rules for a client's transfer, and the log of its files.
#[derive(Clone, Default)]
pub(crate) struct Bounds {
    /// How much its directory may hold.
    pub quota: Option<Arc<Quota>>,
    /// Receives a record of each file.
    pub log: Option<Arc<dyn FileLog>>,
    /// The part of the directory that the peer may learn of.
    pub view: View,
}

/// All files of a transfer at its receiver.
pub(crate) struct IncomingFiles {
    destination: Destination,
    policy: Policy,
    bounds: Bounds,
    expected: Mutex<Expected>,
    /// The deletion at the end, if any.
    deletion: Option<Deletion>,
    /// The names of users and groups, if owners are accepted.
    accounts: Accounts,
    state: Mutex<IncomingState>,
    /// Disk space for large files that are wanted and for which none is reserved yet, bytes.
    promised: AtomicU64,
    /// Notified when the last open file is whole or given up.
    idle: Condvar,
    holes: HoleWork,
    /// How many unfinished files are open.
    descriptors: Arc<AtomicUsize>,
    /// The transfer ended: whatever still works on it stops.
    over: AtomicBool,
}

/// Files that were written and may not be on the disk.
#[derive(Default)]
enum SmallFiles {
    #[default]
    None,
    One(RelativePath),
    Several,
}

impl SmallFiles {
    fn add(&mut self, path: &RelativePath) {
        *self = match self {
            SmallFiles::None => SmallFiles::One(path.clone()),
            _ => SmallFiles::Several,
        };
    }

    /// Counts one file as several unless it came `alone`.
    fn filter(self, alone: bool) -> SmallFiles {
        match self {
            SmallFiles::One(_) if !alone => SmallFiles::Several,
            other => other,
        }
    }
}

#[derive(Default)]
struct IncomingState {
    /// How many entries were decided on.
    planned: u32,
    /// Content that came before its entry was decided on.
    early: HashMap<u32, Vec<u8>>,
    open: HashMap<u32, Arc<IncomingFile>>,
    /// The memory that they take, bytes.
    open_bytes: usize,
    /// Files that failed while pieces of them were on their way.
    given_up: NumberSet,
    /// Entries that later ones may refer to, and which of them are there as they were announced.
    names: NameList,
    whole: NumberSet,
    made: MadeDirectories,
    compared: ComparedFiles,
    directories: Vec<LateDirectory>,
    /// Entries that are further names of others.
    hard_links: Vec<(u32, u32)>,
    results: Vec<FileResult>,
    /// How many were written or unchanged.
    counts: FileCounts,
    failures: Failures,
    content: Bytes,
    /// The hash of the last file, and the number of files with one.
    hash: Option<blake3::Hash>,
    small_files: SmallFiles,
    /// Whether extended attributes came that this end did not ask for.
    attributes_left_out: bool,
    would_move: BoundedLines,
    pruning: Pruning,
}

impl IncomingFiles {
    pub fn new(
        destination: Destination,
        policy: Policy,
        bounds: Bounds,
        expected: Expected,
    ) -> IncomingFiles {
        IncomingFiles {
            destination,
            policy,
            bounds,
            expected: Mutex::new(expected),
            deletion: None,
            accounts: if policy.owners { Accounts::of_this_host() } else { Accounts::default() },
            state: Mutex::default(),
            promised: AtomicU64::new(0),
            idle: Condvar::new(),
            holes: HoleWork::default(),
            descriptors: Arc::default(),
            over: AtomicBool::new(false),
        }
    }

    /// The same with a deletion at the end.
    pub fn deleting(mut self, deletion: Option<Deletion>) -> IncomingFiles {
        self.deletion = deletion;
        self
    }

    /// Ends all work: the transfer is over.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.holes.end();
        self.idle.notify_all();
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// The quota, if there is one.
    fn quota(&self) -> Option<&Quota> {
        self.bounds.quota.as_deref().filter(|_| !self.policy.dry_run)
    }

    /// Reserves `room` of the quota, for something at `path`.
    fn take_room(&self, path: &RelativePath, room: u64) -> Result<(), TransferError> {
        match self.quota() {
            Some(quota) if !quota.take(room) => {
                let path = path.to_string().into();
                Err(TransferError::Quota { path, quota: quota.limit() })
            }
            _ => Ok(()),
        }
    }

    /// Runs a step that may replace the file at `path`, then returns that file's quota.
    fn replacing<T>(
        &self,
        target: &TargetDirectory,
        path: &RelativePath,
        step: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        match self.quota().filter(|_| self.policy.replace) {
            Some(quota) => quota.replacing(|| target.find(path).ok(), step),
            None => step(),
        }
    }

    /// Charges a file for its present disk use; `more` bytes may still be on their way.
    fn settle_room(&self, content: &mut Content, more: u64) {
        if let Some(quota) = self.quota()
            && let Some(temp_file) = &content.temp_file
            && let Ok(metadata) = temp_file.file.metadata()
        {
            let needed = room_on_disk(&metadata).saturating_add(more);
            quota.settle(content.room, needed);
            content.room = needed;
        }
    }

    /// Releases reserved space of a file that was used or is not needed any more.
    fn release_promised(&self, content: &mut Content, bytes: u64) {
        let released = bytes.min(content.promised);
        content.promised -= released;
        self.promised.fetch_sub(released, Ordering::Relaxed);
    }

    /// Gives room back.
    fn give_room_back(&self, room: u64) {
        if let Some(quota) = self.quota() {
            quota.give_back(room);
        }
    }

    fn log(&self, file: &IncomingFile, outcome: Result<(blake3::Hash, bool), &str>) {
        if let Some(log) = &self.bounds.log {
            let path = Path::new(OsStr::from_bytes(file.path.as_bytes()));
            log.file(&FileRecord { path, size: file.size.map(Bytes::new), outcome });
        }
    }

    /// All of a file came: it is verified, and gets its name. One with holes is left to the thread that hashes them.
    fn finish(&self, file: &Arc<IncomingFile>) {
        if lock(&file.content).progress.hole_pieces() == 0 {
            self.finish_now(file);
        } else {
            self.holes.finish_later(Arc::clone(file));
        }
    }

    fn finish_now(&self, file: &Arc<IncomingFile>) {
        let Some((hash, sent)) = self.hash(file) else { return };
        if sent.is_some_and(|sent| sent != hash) {
            let (sent, received) = (sent.unwrap_or(hash).to_string(), hash.to_string());
            let error = TransferError::WrongHash { sent, received };
            return self.differs(file, &error);
        }
        match self.put_in_place(file, &hash) {
            Ok(written) => self.close(file, Ok((hash, written))),
            Err(error) => self.give_up(file, &error),
        }
    }

    /// The received or existing content differs from the sender's.
    fn differs(&self, file: &Arc<IncomingFile>, failure: impl Into<Failure>) {
        let sent = lock(&file.content).progress.hash_sent();
        match sent {
            Some(sent) if self.policy.dry_run => {
                let line = format!("{} ({})", file.path, Bytes::new(file.size.unwrap_or(0)));
                lock(&self.state).would_move.add(line);
                self.close(file, Ok((sent, true)));
            }
            _ if file.compare_only => {
                let path = file.path.to_string().into();
                self.give_up(file, &TransferError::Exists(path));
            }
            _ => self.give_up(file, failure),
        }
    }

    /// Gives a file with this content `hash` its mode, time and name. Returns whether it was written.
    fn put_in_place(
        &self,
        file: &IncomingFile,
        hash: &blake3::Hash,
    ) -> Result<bool, TransferError> {
        let failed = |error| exists_or(&file.path, error);
        let Destination::Directory { target, .. } = &self.destination else {
            io::stdout().flush().map_err(failed)?;
            return Ok(true);
        };
        let mut content = lock(&file.content);
        if file.compare_only {
            return Ok(false);
        }
        if content.progress.pieces_came() == 0
            && content.temp_file.is_none()
            && let Some(id) = content.basis
        {
            let basis = target.open_same(&file.path, id).map_err(failed)?;
            if has_length(&basis, file.size) {
                // The same content under another time or mode.
                set_owner_mode_and_time(&basis, &file.status).map_err(failed)?;
                return Ok(false);
            }
        }
        let Some(temp_file) = self.temp_file(file, &mut content)? else { return Ok(true) };
        content.basis = None;
        drop(content);
        if let Some(size) = file.size
            && !has_length(&temp_file.file, Some(size))
        {
            temp_file.file.set_len(size).map_err(failed)?;
        }
        file.status.give(&temp_file.file).map_err(failed)?;
        let large = file.is_large();
        if large {
            // Its content before its name, so that a power cut never leaves a name without content.
            temp_file.file.sync_all().map_err(failed)?;
        }
        if large || file.sparse {
            self.settle_room(&mut lock(&file.content), 0);
        }
        lock(&file.content).close();
        let finished = self.replacing(target, &file.path, || {
            target.finish(&temp_file, &file.path, self.policy.replace, || *hash)
        });
        if !finished.map_err(failed)? {
            return Ok(false);
        }
        lock(&file.content).room = 0;
        if large {
            target.sync_parent(&file.path).map_err(failed)?;
        } else {
            lock(&self.state).small_files.add(&file.path);
        }
        Ok(true)
    }

    /// A file cannot be received.
    fn give_up(&self, file: &Arc<IncomingFile>, failure: impl Into<Failure>) {
        self.close(file, Err(failure.into()));
    }

    fn close(&self, file: &Arc<IncomingFile>, outcome: Result<(blake3::Hash, bool), Failure>) {
        let room = {
            let mut content = lock(&file.content);
            content.closed = true;
            self.holes.forget(&mut content);
            // The file that remains for a resume keeps its quota, including writes in progress.
            let stays = content.temp_file.as_ref().is_some_and(|temp_file| temp_file.is_of_use());
            if stays {
                let writing = u64::from(content.writing) * PIECE_BYTES;
                self.settle_room(&mut content, writing);
            }
            content.close();
            content.basis = None;
            self.release_promised(&mut content, u64::MAX);
            let room = std::mem::take(&mut content.room);
            if stays { 0 } else { room }
        };
        let mut state = lock(&self.state);
        if state.open.remove(&file.number).is_none() {
            return;
        }
        state.open_bytes -= file.weight();
        self.give_room_back(room);
        let logged = outcome.as_ref().map(|done| *done).map_err(|failure| &*failure.here);
        self.log(file, logged);
        match &outcome {
            Ok((hash, written)) => {
                state.whole.insert(file.number);
                state.count(*written);
                state.hash = Some(*hash);
            }
            Err(failure) => {
                state.given_up.insert(file.number);
                state.note_failure(&file.path.to_string(), &failure.here);
            }
        }
        let outcome = outcome
            .map(|(hash, _)| *hash.as_bytes())
            .map_err(|failure| shortened(failure.for_sender).into());
        state.results.push(FileResult { entry: file.number, outcome });
        if state.open.is_empty() {
            self.idle.notify_all();
        }
    }

    fn note_failure(&self, path: &str, reason: &str) {
        lock(&self.state).note_failure(path, reason);
    }

    /// Whether a large file's partial content stays after an interruption.
    fn keep(&self) -> Keep {
        if self.policy.replace { Keep::Always } else { Keep::UnlessNamed }
    }

    /// The results of files since the last call.
    pub fn results(&self) -> Vec<FileResult> {
        std::mem::take(&mut lock(&self.state).results)
    }

    /// Waits until no file is open, or `is_over`.
    pub fn wait_until_whole(&self, is_over: impl Fn() -> bool) {
        let mut state = lock(&self.state);
        while !state.open.is_empty() && !is_over() {
            let look = std::time::Duration::from_millis(100);
            state = match self.idle.wait_timeout(state, look) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Everything came: further names of files, modes and times of directories, and all of it to disk.
    pub fn complete(&self) -> Result<(), TransferError> {
        let Destination::Directory { target, .. } = &self.destination else { return Ok(()) };
        let (links, mut directories, listed, small, found) = {
            let mut state = lock(&self.state);
            let alone = state.planned == 1;
            (
                std::mem::take(&mut state.hard_links),
                std::mem::take(&mut state.directories),
                (std::mem::take(&mut state.names), std::mem::take(&mut state.whole)),
                std::mem::take(&mut state.small_files).filter(alone),
                state.counts.unchanged > 0 && !self.policy.dry_run,
            )
        };
        let (names, whole) = listed;
        for (number, to) in links {
            let Some((path, _)) = names.get(number).filter(|_| !self.is_over()) else { break };
            let made = match names.get(to) {
                Some((from, Some(announced))) if whole.contains(to) => {
                    self.make_hard_link(target, &from, announced, &path)
                }
                Some(_) => Err(TransferError::ForeignLink(path.to_string().into())),
                None => Err(ProtocolError::NoEntry(to).into()),
            };
            if !matches!(made, Ok(true)) {
                self.give_room_back(room_of(0));
            }
            match made {
                Ok(new) => lock(&self.state).count(new),
                Err(error) => self.note_failure(&path.to_string(), &error.to_string()),
            }
        }
        self.prune(target);
        // The deepest first: changes in a directory change its time.
        directories.sort_by_key(|directory| std::cmp::Reverse(directory.depth));
        for LateDirectory { number, mode, modified, owner, .. } in directories {
            let Some((path, _)) = names.get(number).filter(|_| !self.is_over()) else { break };
            if let Err(error) = target.finish_directory(&path, mode, modified, owner) {
                self.note_failure(&path.to_string(), &target::failed(&path, error).to_string());
            }
        }
        // An earlier transfer may have failed to sync a file that now counts as unchanged.
        let synced = match small {
            // Beside other programs the whole file system may take long.
            SmallFiles::One(path) if !found && !target.was_made(None).unwrap_or(true) => {
                target.sync_file(&path)
            }
            SmallFiles::None if !found => Ok(()),
            _ => target.sync(),
        };
        synced.map_err(TransferError::system("writing to disk"))
    }

    /// Gives a file that this transfer brought, or found as it was announced, a further name.
    fn make_hard_link(
        &self,
        target: &TargetDirectory,
        from: &RelativePath,
        announced: Announced,
        path: &RelativePath,
    ) -> Result<bool, TransferError> {
        let foreign = || TransferError::ForeignLink(path.to_string().into());
        let found = target.named_file(from).map_err(|_| foreign())?;
        // Another peer may have put something else there meanwhile.
        let stat = &found.1;
        // Some file systems keep no nanoseconds.
        let as_announced = announced.size.is_none_or(|size| size == stat.st_size as u64)
            && announced.modified == stat.st_mtime;
        if !as_announced || !target.may_tell(stat) {
            return Err(foreign());
        }
        self.replacing(target, path, || target.make_hard_link(&found, path, self.policy.replace))
            .map_err(|error| exists_or(path, error))
    }

    /// Whether extended attributes came that this end did not ask for.
    pub fn attributes_left_out(&self) -> bool {
        lock(&self.state).attributes_left_out
    }

    /// The list of files that would have been written.
    pub fn would_move(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.state).would_move).into_lines()
    }

    /// How many files had which fate, the failures in words, the content that came, and the hash of the only file.
    pub fn summary(&self) -> (FileCounts, Vec<String>, Bytes, Option<blake3::Hash>) {
        let state = lock(&self.state);
        let counts = FileCounts { failed: state.failures.count, ..state.counts };
        (counts, state.failures.lines.clone(), state.content, state.hash)
    }

    /// The content that came so far, and the files that are whole.
    pub fn so_far(&self) -> (Bytes, u64) {
        let state = lock(&self.state);
        (state.content, state.counts.written + state.counts.unchanged)
    }
}

/// Why a file cannot be received.
struct Failure {
    /// In words for this end.
    here: String,
    /// In words for the sender, which learns neither paths nor system errors of this host.
    for_sender: String,
}

impl From<&TransferError> for Failure {
    fn from(error: &TransferError) -> Failure {
        Failure { here: error.to_string(), for_sender: error.for_peer() }
    }
}

impl From<&str> for Failure {
    fn from(reason: &str) -> Failure {
        Failure { here: reason.to_owned(), for_sender: reason.to_owned() }
    }
}

impl IncomingState {
    /// Counts something that was written, or was there already.
    fn count(&mut self, written: bool) {
        let counts = &mut self.counts;
        *(if written { &mut counts.written } else { &mut counts.unchanged }) += 1;
    }

    fn note_failure(&mut self, path: &str, reason: &str) {
        let named = reason.contains(path);
        let line = if named { reason.to_owned() } else { format!("{path}: {reason}") };
        self.failures.add(shortened(line));
    }

    /// Whether a file may be taken in.
    fn may_open(&self, file: &IncomingFile) -> Result<(), TransferError> {
        if self.open_bytes + file.weight() <= MAX_OPEN_BYTES {
            return Ok(());
        }
        let path = file.path.to_string().into();
        let reason =
            "names and attributes of files under way are too long together; send fewer at once";
        Err(TransferError::TooMuch { path, reason })
    }

    /// Adds a file that awaits content.
    fn open(&mut self, file: IncomingFile) -> Arc<IncomingFile> {
        self.open_bytes += file.weight();
        let file = Arc::new(file);
        self.open.insert(file.number, Arc::clone(&file));
        file
    }
}

/// The remains of a transfer that ended early keep their quota, and no more.
impl Drop for IncomingFiles {
    fn drop(&mut self) {
        for file in std::mem::take(&mut lock(&self.state).open).into_values() {
            let mut content = lock(&file.content);
            let stays = content.temp_file.as_ref().is_some_and(|temp_file| temp_file.is_of_use());
            if stays {
                self.settle_room(&mut content, 0);
            } else {
                self.give_room_back(content.room);
            }
        }
    }
}

fn has_length(file: &File, size: Option<u64>) -> bool {
    size.is_some_and(|size| file.metadata().is_ok_and(|metadata| metadata.len() == size))
}

fn exists_or(path: &RelativePath, error: io::Error) -> TransferError {
    match error.kind() {
        io::ErrorKind::AlreadyExists => TransferError::Exists(path.to_string().into()),
        io::ErrorKind::WouldBlock => TransferError::InUse(path.to_string().into()),
        _ => target::failed(path, error),
    }
}
