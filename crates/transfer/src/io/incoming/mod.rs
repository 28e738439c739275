//! Files on their way in: what is wanted of each, where its pieces go, and what became of it.

mod file;
mod pieces;
mod plan;

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use sweetspot_protocol::record::FileResult;
use sweetspot_protocol::{FileCounts, ProtocolError, RelativePath};
use sweetspot_units::Bytes;

use super::channel::lock;
use super::failures::Failures;
use super::quota::{Quota, room_of};
use super::target::{self, TargetDirectory};
use crate::TransferError;
use crate::observer::{FileLog, FileRecord};
use file::{Content, IncomingFile};
pub(crate) use pieces::Job;

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
    /// Whether only to find out what would be written.
    pub dry_run: bool,
}

/// What a client's transfer has to observe, and who is told.
#[derive(Clone, Default)]
pub(crate) struct Bounds {
    /// How much its directory may hold.
    pub quota: Option<Arc<Quota>>,
    /// Who learns of each file.
    pub log: Option<Arc<dyn FileLog>>,
}

/// All files of a transfer at its receiver.
pub(crate) struct IncomingFiles {
    destination: Destination,
    policy: Policy,
    bounds: Bounds,
    state: Mutex<State>,
    /// Disk space for large files that are wanted and for which none is reserved yet, bytes.
    promised: AtomicU64,
    /// Notified when the last open file is whole or given up.
    idle: Condvar,
}

#[derive(Default)]
struct State {
    open: HashMap<u32, Arc<IncomingFile>>,
    /// Files that failed while pieces of them were on their way.
    given_up: HashSet<u32>,
    /// Entries by number that later ones refer to: files with several names.
    paths: HashMap<u32, RelativePath>,
    /// Directories that this transfer made: nothing was in them.
    made: HashSet<Vec<u8>>,
    directories: Vec<(RelativePath, u32, (i64, u32))>,
    hard_links: Vec<(RelativePath, u32)>,
    results: Vec<FileResult>,
    /// How many were written or unchanged.
    counts: FileCounts,
    failures: Failures,
    content: Bytes,
    /// The hash of the last file, and how many had one.
    hash: Option<blake3::Hash>,
    small_files: bool,
    would_move: Vec<String>,
}

impl IncomingFiles {
    pub fn new(destination: Destination, policy: Policy, bounds: Bounds) -> IncomingFiles {
        let (state, idle) = (Mutex::default(), Condvar::new());
        IncomingFiles { destination, policy, bounds, state, promised: AtomicU64::new(0), idle }
    }

    /// Takes room for something at `path` that is `length` bytes long where `held` bytes of room are taken already.
    /// Returns what was taken.
    fn take_room(&self, path: &RelativePath, length: u64, held: u64) -> Result<u64, TransferError> {
        let Some(quota) = self.bounds.quota.as_ref().filter(|_| !self.policy.dry_run) else {
            return Ok(0);
        };
        let room = room_of(length).saturating_sub(held);
        if quota.take(room) {
            return Ok(room);
        }
        Err(TransferError::Quota { path: path.to_string().into(), quota: quota.limit() })
    }

    /// So much of what was promised to a file is reserved, or not needed any more.
    fn release_promised(&self, content: &mut Content, bytes: u64) {
        let released = bytes.min(content.promised);
        content.promised -= released;
        self.promised.fetch_sub(released, Ordering::Relaxed);
    }

    /// Gives back what [`IncomingFiles::take_room`] took.
    fn give_room_back(&self, room: u64) {
        if let Some(quota) = &self.bounds.quota {
            quota.give_back(room);
        }
    }

    fn log(&self, file: &IncomingFile, outcome: Result<(blake3::Hash, bool), &str>) {
        if let Some(log) = &self.bounds.log {
            let path = Path::new(OsStr::from_bytes(file.path.as_bytes()));
            log.file(&FileRecord { path, size: file.size.map(Bytes::new), outcome });
        }
    }

    /// All of a file came: it is verified, and gets its name.
    fn finish(&self, file: &Arc<IncomingFile>) {
        let (hash, sent) = {
            let content = lock(&file.content);
            (content.progress.hash(), content.progress.hash_sent())
        };
        if sent.is_some_and(|sent| sent != hash) {
            if self.policy.dry_run {
                let line = format!("{} ({})", file.path, Bytes::new(file.size.unwrap_or(0)));
                lock(&self.state).would_move.push(line);
                return self.close(file, Ok((sent.unwrap_or(hash), true)));
            }
            if file.compare_only {
                let path = file.path.to_string().into();
                return self.give_up(file, &TransferError::Exists(path).to_string());
            }
            let (sent, received) = (sent.unwrap_or(hash).to_string(), hash.to_string());
            return self.give_up(file, &TransferError::WrongHash { sent, received }.to_string());
        }
        match self.put_in_place(file, &hash) {
            Ok(written) => self.close(file, Ok((hash, written))),
            Err(error) => self.give_up(file, &error.to_string()),
        }
    }

    /// Gives a file, whose content has this `hash`, its mode, its time and its name. Returns whether it was written.
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
        let untouched = content.progress.pieces_came() == 0
            && content.basis.as_ref().is_some_and(|basis| has_length(basis, file.size));
        if untouched && content.temp_file.is_none() {
            // The same content under another time or mode.
            if let Some(basis) = content.basis.take() {
                target::set_mode_and_time(&basis, &file.status).map_err(failed)?;
            }
            return Ok(false);
        }
        let Some(temp_file) = self.temp_file(file, &mut content)? else { return Ok(true) };
        content.temp_file = None;
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
        let finished = target.finish(&temp_file, &file.path, self.policy.replace, || *hash);
        if !finished.map_err(failed)? {
            return Ok(false);
        }
        if large {
            target::sync_parent(target, &file.path).map_err(failed)?;
        } else {
            lock(&self.state).small_files = true;
        }
        Ok(true)
    }

    /// A file cannot be received.
    fn give_up(&self, file: &Arc<IncomingFile>, reason: &str) {
        self.close(file, Err(reason.to_owned()));
    }

    fn close(&self, file: &Arc<IncomingFile>, outcome: Result<(blake3::Hash, bool), String>) {
        let room = {
            let mut content = lock(&file.content);
            // What stays to go on with takes its room.
            let stays = content.temp_file.take().is_some();
            content.basis = None;
            let room = std::mem::take(&mut content.room);
            self.release_promised(&mut content, u64::MAX);
            if outcome.is_err() && !stays { room } else { 0 }
        };
        let mut state = lock(&self.state);
        if state.open.remove(&file.number).is_none() {
            return;
        }
        self.give_room_back(room);
        let told = outcome.as_ref().map(|done| *done).map_err(String::as_str);
        self.log(file, told);
        match &outcome {
            Ok((hash, written)) => {
                state.count(*written);
                state.hash = Some(*hash);
            }
            Err(reason) => {
                state.given_up.insert(file.number);
                state.note_failure(&file.path.to_string(), reason);
            }
        }
        let outcome = outcome.map(|(hash, _)| *hash.as_bytes());
        state.results.push(FileResult { entry: file.number, outcome });
        if state.open.is_empty() {
            self.idle.notify_all();
        }
    }

    fn note_failure(&self, path: &str, reason: &str) {
        lock(&self.state).note_failure(path, reason);
    }

    /// What became of files since the last call.
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
        let (links, mut directories, paths, small_files) = {
            let mut state = lock(&self.state);
            (
                std::mem::take(&mut state.hard_links),
                std::mem::take(&mut state.directories),
                std::mem::take(&mut state.paths),
                state.small_files,
            )
        };
        for (path, to) in links {
            let made = match paths.get(&to) {
                Some(from) => target
                    .make_hard_link(from, &path, self.policy.replace)
                    .map_err(|error| exists_or(&path, error)),
                None => Err(ProtocolError::NoEntry(to).into()),
            };
            match made {
                Ok(new) => lock(&self.state).count(new),
                Err(error) => self.note_failure(&path.to_string(), &error.to_string()),
            }
        }
        // The deepest first: what is done in a directory changes its time.
        directories.sort_by_key(|(path, ..)| std::cmp::Reverse(path.depth()));
        for (path, mode, modified) in directories {
            if let Err(error) = target.finish_directory(&path, mode, modified) {
                self.note_failure(&path.to_string(), &target::failed(&path, error).to_string());
            }
        }
        if small_files {
            target.sync().map_err(TransferError::system("writing to disk"))?;
        }
        Ok(())
    }

    /// What would have been written.
    pub fn would_move(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.state).would_move)
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

impl State {
    /// Counts something that was written, or was there already.
    fn count(&mut self, written: bool) {
        let counts = &mut self.counts;
        *(if written { &mut counts.written } else { &mut counts.unchanged }) += 1;
    }

    fn note_failure(&mut self, path: &str, reason: &str) {
        let named = reason.contains(path);
        self.failures.add(if named { reason.to_owned() } else { format!("{path}: {reason}") });
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
