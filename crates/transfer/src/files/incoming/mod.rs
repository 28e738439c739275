//! Incoming files: decides which content to request, writes pieces, and reports results.

mod complete;
mod destination;
mod dry_run;
mod entry_queue;
mod existing;
mod file;
mod finish;
mod holes;
mod kept;
#[cfg(test)]
mod laws;
mod name_list;
mod pieces;
mod plan;
mod plan_file;
mod prune;
mod requested_sources;
mod state;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use sweetspot_protocol::record::{FileResult, Record};
use sweetspot_protocol::{DirectoryStatus, FileCounts, RelativePath};
use sweetspot_units::Bytes;

use crate::files::accounts::Accounts;
use crate::files::provenance::View;
use crate::files::quota::{Quota, room_on_disk};
use crate::files::target::{self, TargetDirectory};
use crate::files::temp_file::Keep;
use crate::files::would_move::DryRunList;
use crate::lock::lock;
use crate::observer::FileLog;
use crate::wire::channel::Channel;
use crate::{Result, TransferError};
pub(crate) use entry_queue::EntryQueue;
use file::Content;
use holes::HoleWork;
use kept::shortened;
pub(crate) use pieces::Job;
pub use prune::Delete;
pub(crate) use prune::Deletion;
pub(crate) use requested_sources::Expected;
pub use requested_sources::{NamedThings, Nameless, RequestedSources};
use state::IncomingState;

/// The destination of records for the sender.
pub(crate) trait Answers: Sync {
    /// Sends one record. Blocks while the sender does not read.
    fn send_record(&self, record: &Record) -> Result<()>;
}

impl Answers for Channel {
    fn send_record(&self, record: &Record) -> Result<()> {
        Channel::send_record(self, record)
    }
}

/// The destination of the content.
pub(crate) enum Destination {
    /// Into files below a directory.
    Directory { target: TargetDirectory, top: Top },
    /// To standard output, which holds only one file.
    Output,
}

/// How names are placed in the target directory.
#[derive(PartialEq, Eq)]
pub(crate) enum Top {
    /// Every entry keeps the sender's name.
    Sent,
    /// The only file gets this name.
    Named(Vec<u8>),
    /// Every entry goes into a new directory of this name, which a dry run does not create.
    Below(Vec<u8>),
}

impl Top {
    /// Whether this end's user chose the name at the top.
    fn is_chosen(&self) -> bool {
        !matches!(self, Top::Sent)
    }

    /// The path at this end of an entry sent as `path`.
    fn place(&self, path: &RelativePath) -> Result<RelativePath> {
        let bytes = path.as_bytes();
        Ok(match self {
            Top::Sent => path.clone(),
            Top::Named(name) => RelativePath::new(name.clone())?,
            Top::Below(name) => RelativePath::new([&name[..], b"/", bytes].concat())?,
        })
    }
}

/// How existing files are treated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    pub replace: bool,
    /// Whether an entry of another kind also replaces an existing one: a directory a file, or a file an empty directory.
    pub other_kinds: bool,
    /// Whether existing files count as unchanged, whatever their content. Otherwise a file that differs is a failure,
    /// unless it is replaced.
    pub leave: bool,
    /// Whether to compare contents even if length and time are the same.
    pub checksum: bool,
    pub dry_run: bool,
    /// Whether extended attributes (`user.*`) are accepted.
    pub attributes: bool,
    /// Whether existing files lose extended attributes that the sender's files do not have.
    pub exact_attributes: bool,
    /// Whether owners are accepted.
    pub owners: bool,
    /// Whether names that begin with a dot are allowed in any directory, not only in those that transfers created.
    pub dotfiles: bool,
    /// Whether symbolic links may lead out of the directory.
    pub outward_links: bool,
}

/// The rules for a client's transfer, and the log of its files.
#[derive(Clone, Default)]
pub(crate) struct Bounds {
    /// The quota of the client's directory.
    pub quota: Option<Arc<Quota>>,
    pub log: Option<Arc<dyn FileLog>>,
    /// The part of the directory that the peer may learn about.
    pub view: View,
}

pub(crate) struct IncomingFiles {
    destination: Destination,
    policy: Policy,
    bounds: Bounds,
    expected: Mutex<Expected>,
    deletion: Option<Deletion>,
    /// The sender's attributes for the directory itself.
    top_status: Option<DirectoryStatus>,
    /// The names of users and groups, if owners are accepted.
    accounts: Accounts,
    state: Mutex<IncomingState>,
    /// Disk space that requested large files still need and that is not yet reserved, bytes.
    promised: AtomicU64,
    /// Content of unchanged files, bytes.
    unchanged: AtomicU64,
    /// Content in partial files of interrupted transfers that was not sent again, bytes.
    resumed: AtomicU64,
    /// Notified when the last open file is complete or has failed.
    idle: Condvar,
    holes: HoleWork,
    /// Number of descriptors open for unfinished files.
    descriptors: Arc<AtomicUsize>,
    /// The transfer is over: all its threads stop.
    over: AtomicBool,
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
            top_status: None,
            accounts: if policy.owners { Accounts::of_this_host() } else { Accounts::default() },
            state: Mutex::default(),
            promised: AtomicU64::new(0),
            unchanged: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            idle: Condvar::new(),
            holes: HoleWork::default(),
            descriptors: Arc::default(),
            over: AtomicBool::new(false),
        }
    }

    /// The same with a deletion at the end of the transfer.
    pub fn deleting(mut self, deletion: Option<Deletion>) -> IncomingFiles {
        self.deletion = deletion;
        self
    }

    /// The same with the sender's attributes for the target directory.
    pub fn with_top_status(mut self, status: Option<DirectoryStatus>) -> IncomingFiles {
        // If this end's user chose a file's name, the directory does not correspond to the sender's.
        self.top_status = status.filter(|_| !self.policy.dry_run && !self.is_top_chosen());
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

    /// Whether this end's user chose the name at the top.
    fn is_top_chosen(&self) -> bool {
        matches!(&self.destination, Destination::Directory { top, .. } if top.is_chosen())
    }

    /// The quota, if there is one.
    fn quota(&self) -> Option<&Quota> {
        self.bounds.quota.as_deref().filter(|_| !self.policy.dry_run)
    }

    /// Reserves `room` of the quota for an entry at `path`.
    fn take_room(&self, path: &RelativePath, room: u64) -> Result<()> {
        match self.quota() {
            Some(quota) if !quota.take(room) => {
                let path = path.to_string().into();
                let (quota, used) = (quota.limit(), quota.used());
                Err(TransferError::Quota { path, quota, used })
            }
            _ => Ok(()),
        }
    }

    /// Runs a step that may replace the file or the empty directory at `path`, and then frees the replaced entry's quota.
    fn replacing<T>(
        &self,
        target: &TargetDirectory,
        path: &RelativePath,
        step: impl Fn() -> io::Result<T>,
    ) -> io::Result<T> {
        let make_way = || match step() {
            Err(error)
                if error.kind() == io::ErrorKind::IsADirectory && self.policy.other_kinds =>
            {
                target.remove_empty(path)?;
                step()
            }
            done => done,
        };
        match self.quota().filter(|_| self.policy.replace) {
            Some(quota) => quota.replacing(|| target.find(path).ok(), make_way),
            None => make_way(),
        }
    }

    /// Charges the quota for a file's present disk usage, plus `more` bytes that are still being written.
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

    /// Releases promised disk space that was used or is no longer needed.
    fn release_promised(&self, content: &mut Content, bytes: u64) {
        let released = bytes.min(content.promised);
        content.promised -= released;
        self.promised.fetch_sub(released, Ordering::Relaxed);
    }

    fn release_room(&self, room: u64) {
        if let Some(quota) = self.quota() {
            quota.give_back(room);
        }
    }

    fn note_failure(&self, path: &str, reason: &str) {
        let line = self.failure_line(path, reason);
        lock(&self.state).failures.add(line);
    }

    /// The line for this end's user. The name at the start of `reason` is extended to the path on this host, or added if it
    /// is missing.
    fn failure_line(&self, path: &str, reason: &str) -> String {
        let place = match &self.destination {
            Destination::Directory { target, .. } => target.shown(path),
            Destination::Output => path.to_owned(),
        };
        let rest = reason.strip_prefix(path).filter(|rest| rest.starts_with([' ', ':']));
        shortened(match rest {
            Some(rest) => place + rest,
            None => format!("{place}: {reason}"),
        })
    }

    /// Whether a large file's partial content is kept after an interruption.
    fn keep(&self) -> Keep {
        if self.policy.replace { Keep::Always } else { Keep::UnlessNamed }
    }

    /// The results of files since the last call.
    pub fn results(&self) -> Vec<FileResult> {
        std::mem::take(&mut lock(&self.state).results)
    }

    /// Waits until no file is open, or until `is_over` returns true.
    pub fn wait_until_complete(&self, is_over: impl Fn() -> bool) {
        let mut state = lock(&self.state);
        while !state.open.is_empty() && !is_over() {
            let look = std::time::Duration::from_millis(100);
            state = match self.idle.wait_timeout(state, look) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Whether the sender sent extended attributes that this end did not ask for.
    pub fn attributes_left_out(&self) -> bool {
        lock(&self.state).attributes_left_out
    }

    /// The list of a dry run.
    pub fn take_dry_run(&self) -> DryRunList {
        std::mem::take(&mut lock(&self.state).dry_run)
    }

    /// Number of files and directories sent with set-user-ID, set-group-ID or sticky bits.
    pub fn special_bits(&self) -> u64 {
        lock(&self.state).special_bits
    }

    /// File counts by fate, failure messages, content received, and the hash of the only file.
    pub fn summary(&self) -> (FileCounts, Vec<String>, Bytes, Option<blake3::Hash>) {
        let state = lock(&self.state);
        let counts = FileCounts { failed: state.failures.count, ..state.counts };
        (counts, state.failures.lines.clone(), state.content, state.hash)
    }

    /// Whether every entry failed.
    pub fn moved_nothing(&self) -> bool {
        let state = lock(&self.state);
        state.failures.count > 0 && state.counts.present() == 0
    }

    pub fn has_written(&self) -> bool {
        let state = lock(&self.state);
        let changed = state.counts.written + state.counts.updated;
        state.content > Bytes::ZERO || changed > 0 || !state.made.is_empty()
    }

    /// Content that already existed here before the transfer, of the sender's files.
    pub fn present(&self) -> Bytes {
        Bytes::new(self.unchanged.load(Ordering::Relaxed)) + self.resumed()
    }

    /// The part of [`IncomingFiles::present`] that an interrupted transfer left.
    pub fn resumed(&self) -> Bytes {
        Bytes::new(self.resumed.load(Ordering::Relaxed))
    }

    /// The content received so far, and the number of complete files.
    pub fn so_far(&self) -> (Bytes, u64) {
        let state = lock(&self.state);
        (state.content, state.counts.present())
    }
}

/// Partial files that remain keep only the quota that they use.
impl Drop for IncomingFiles {
    fn drop(&mut self) {
        for file in std::mem::take(&mut lock(&self.state).open).into_values() {
            let mut content = lock(&file.content);
            let stays = content.temp_file.as_ref().is_some_and(|temp_file| temp_file.is_of_use());
            if stays {
                self.settle_room(&mut content, 0);
            } else {
                self.release_room(content.room);
            }
        }
    }
}

fn exists_or(path: &RelativePath, error: io::Error) -> TransferError {
    match error.kind() {
        io::ErrorKind::AlreadyExists => TransferError::Exists(path.to_string().into()),
        io::ErrorKind::IsADirectory => TransferError::IsDirectory(path.to_string().into()),
        io::ErrorKind::WouldBlock => TransferError::InUse(path.to_string().into()),
        _ => target::failed(path, error),
    }
}
