//! What is wanted of each entry.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use sweetspot_protocol::hash_tree::{self, PIECE_BYTES, piece_hash, piece_length};
use sweetspot_protocol::record::{Answer, Entry, EntryKind, MAX_HASHES, Record};
use sweetspot_protocol::{ProtocolError, RelativePath};
use sweetspot_units::Bytes;

use super::super::channel::{Channel, lock};
use super::super::quota::room_of;
use super::super::target::{self, TargetDirectory};
use super::file::IncomingFile;
use super::{Destination, IncomingFiles, exists_or};
use crate::TransferError;

/// The most files that may be wanted and not yet whole: honest senders list no further ahead than that.
const MAX_OPEN_FILES: usize = 1 << 16;
/// The unit in which `stat` counts what a file takes of the disk, bytes.
const BLOCK_BYTES: u64 = 512;

/// The answer to an entry, and the file whose hashes follow, if any do.
type Planned = Result<(Answer, Option<Arc<IncomingFile>>), TransferError>;

impl IncomingFiles {
    /// Decides what is wanted of the entries from number `first` on, and answers them.
    pub fn plan(
        &self,
        first: u32,
        entries: Vec<Entry>,
        channel: &Channel,
    ) -> Result<(), TransferError> {
        let mut answers = Vec::with_capacity(entries.len());
        for (number, entry) in (first..).zip(entries) {
            let path = entry.path.clone();
            let planned = self.plan_entry(number, entry);
            let (answer, basis) = match planned {
                Ok(planned) => planned,
                Err(error) => {
                    let reason = error.to_string();
                    self.note_failure(&path.to_string(), &reason);
                    (Answer::Refused { reason }, None)
                }
            };
            answers.push(answer);
            if let Some(basis) = basis {
                channel.tell(&Record::Answers(std::mem::take(&mut answers)))?;
                self.send_hashes(&basis, channel)?;
            }
        }
        if !answers.is_empty() {
            channel.tell(&Record::Answers(answers))?;
        }
        let full = lock(&self.state).open.len() > MAX_OPEN_FILES;
        let (what, when) = ("entries", "too far ahead");
        if full { Err(ProtocolError::OutOfOrder { what, when }.into()) } else { Ok(()) }
    }

    fn plan_entry(&self, number: u32, mut entry: Entry) -> Planned {
        let Destination::Directory { target, top_name } = &self.destination else {
            return self.plan_output(number, entry);
        };
        if let Some(name) = top_name {
            entry.path = renamed(&entry.path, name)?;
        }
        let failed = |error| target::failed(&entry.path, error);
        if self.policy.dry_run {
            return self.plan_dry_run(target, number, entry);
        }
        match &entry.kind {
            EntryKind::Directory => {
                let room = self.take_room(&entry.path, 0, 0)?;
                let new =
                    target.make_directory(&entry.path, entry.mode).map_err(|error| match error
                        .kind()
                    {
                        io::ErrorKind::AlreadyExists => {
                            TransferError::NotADirectory(entry.path.to_string().into())
                        }
                        _ => failed(error),
                    })?;
                if !new {
                    self.give_room_back(room);
                }
                let done = (entry.path, entry.mode, entry.modified);
                let mut state = lock(&self.state);
                if new {
                    state.made.insert(done.0.as_bytes().to_vec());
                }
                // What is there keeps its mode and time where nothing may be replaced.
                if new || self.policy.replace {
                    state.directories.push(done);
                }
                Ok((Answer::Nothing, None))
            }
            EntryKind::Symlink { target: to } => {
                let room = self.take_room(&entry.path, 0, 0)?;
                let new = target
                    .make_symlink(&entry.path, to, self.policy.replace)
                    .map_err(|error| exists_or(&entry.path, error))?;
                if !new {
                    self.give_room_back(room);
                }
                let _ = target.set_link_time(&entry.path, entry.modified);
                lock(&self.state).count(new);
                Ok((Answer::Nothing, None))
            }
            EntryKind::HardLink { to } => {
                self.take_room(&entry.path, 0, 0)?;
                lock(&self.state).hard_links.push((entry.path, *to));
                Ok((Answer::Nothing, None))
            }
            EntryKind::File { .. } | EntryKind::Stream => self.plan_file(target, number, entry),
        }
    }

    /// What would be wanted, without writing anything.
    fn plan_dry_run(&self, target: &TargetDirectory, number: u32, entry: Entry) -> Planned {
        // Where the directory is not there, nothing in it is.
        let there = target.status(&entry.path).unwrap_or(None);
        let size = match entry.kind {
            EntryKind::File { size, .. } => size,
            EntryKind::Stream => 0,
            _ => return Ok((Answer::Nothing, None)),
        };
        let same = there.as_ref().is_some_and(|stat| is_same(stat, size, entry.modified));
        if same && !self.policy.checksum {
            lock(&self.state).count(false);
            return Ok((Answer::Nothing, None));
        }
        let regular = there.as_ref().is_some_and(|stat| target::is(stat, FileType::RegularFile));
        if regular && self.policy.checksum && there.is_some_and(|s| s.st_size as u64 == size) {
            let mut file = IncomingFile::new(number, entry, Some(size));
            file.compare_only = true;
            let basis = target.open_file(&file.path);
            let basis = basis.map_err(|error| target::failed(&file.path, error))?;
            let pieces = covered(&basis, size);
            file.content.get_mut().unwrap_or_else(|p| p.into_inner()).basis = Some(basis);
            let file = Arc::new(file);
            lock(&self.state).open.insert(number, Arc::clone(&file));
            return Ok((Answer::Compare { pieces }, Some(file)));
        }
        if there.is_some() && !self.policy.replace {
            return Err(TransferError::Exists(entry.path.to_string().into()));
        }
        lock(&self.state).would_move.push(format!("{} ({})", entry.path, Bytes::new(size)));
        Ok((Answer::All, None))
    }

    fn plan_file(&self, target: &TargetDirectory, number: u32, entry: Entry) -> Planned {
        let failed = |error| target::failed(&entry.path, error);
        let directory = entry.path.split().0;
        let is_new = directory.is_some_and(|path| lock(&self.state).made.contains(path));
        let there = if is_new { None } else { target.status(&entry.path).map_err(failed)? };
        lock(&self.state).paths.insert(number, entry.path.clone());
        let size = announced(&entry);
        if let (Some(stat), Some(size)) = (&there, size)
            && is_same(stat, size, entry.modified)
            && !self.policy.checksum
        {
            target.remove_leftover(&entry.path);
            lock(&self.state).count(false);
            return Ok((Answer::Nothing, None));
        }
        let mut file = IncomingFile::new(number, entry, size);
        let mut basis = None;
        if let Some(stat) = &there {
            if target::is(stat, FileType::Directory) {
                return Err(TransferError::IsDirectory(file.path.to_string().into()));
            }
            let regular = target::is(stat, FileType::RegularFile);
            let comparable = regular && size == Some(stat.st_size as u64);
            if !self.policy.replace && !comparable {
                return Err(TransferError::Exists(file.path.to_string().into()));
            }
            file.compare_only = !self.policy.replace;
            if file.compare_only || regular && self.policy.checksum {
                let opened = target.open_file(&file.path);
                basis = Some(opened.map_err(|error| target::failed(&file.path, error))?);
            }
        }
        if size.is_some_and(|size| size > hash_tree::MAX_FILE_BYTES) {
            return Err(target::failed(&file.path, Errno::FBIG.into()));
        }
        let pieces = size.map_or(0, hash_tree::pieces);
        let resumes = !file.compare_only && pieces > 1 && target.has_temp_file(&file.path);
        let content = file.content.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        content.basis = basis;
        if resumes {
            let failed = |error| exists_or(&file.path, error);
            content.temp_file = Some(Arc::new(target.temp_file(&file.path, true).map_err(failed)?));
        }
        let partial = content.temp_file.as_ref().and_then(|temp| temp.file.metadata().ok());
        if !file.compare_only {
            let there = there.as_ref().filter(|stat| target::is(stat, FileType::RegularFile));
            let held = there.map_or(0, |stat| room_of(stat.st_size as u64))
                + partial.as_ref().map_or(0, |partial| room_of(partial.len()));
            content.room = self.take_room(&file.path, size.unwrap_or(0), held)?;
        }
        if content.basis.is_none() && !file.sparse {
            // A full disk is known at once, before anything is sent.
            let held = partial.map_or(0, |partial| partial.blocks() * BLOCK_BYTES);
            let large = size.filter(|size| *size > PIECE_BYTES).unwrap_or(0).saturating_sub(held);
            let promised = self.promised.fetch_add(large, Ordering::Relaxed);
            (content.promised, content.reserved) = (large, held);
            if large > 0 && !target.has_room(Bytes::new(promised + large)) {
                self.release_promised(content, large);
                return Err(target::failed(&file.path, Errno::NOSPC.into()));
            }
        }
        let hashes = content.there().map_or(0, |there| covered(there, size.unwrap_or(0)));
        // Nothing to wait for: an empty file is whole at once.
        let empty = size == Some(0) && !file.compare_only;
        let compares = file.compare_only;
        let file = Arc::new(file);
        lock(&self.state).open.insert(number, Arc::clone(&file));
        if empty {
            self.finish(&file);
            return Ok((Answer::Nothing, None));
        }
        Ok(match hashes {
            pieces if compares => (Answer::Compare { pieces }, Some(file)),
            0 => (Answer::All, None),
            pieces => (Answer::Different { pieces }, Some(file)),
        })
    }

    fn plan_output(&self, number: u32, entry: Entry) -> Planned {
        if number > 0 || !entry.kind.has_content() {
            return Err(TransferError::OneOutput);
        }
        let size = announced(&entry);
        let file = Arc::new(IncomingFile::new(number, entry, size));
        lock(&self.state).open.insert(number, Arc::clone(&file));
        if size == Some(0) {
            self.finish(&file);
            return Ok((Answer::Nothing, None));
        }
        Ok((Answer::All, None))
    }

    /// Sends the hashes of what is there of a file.
    fn send_hashes(&self, file: &IncomingFile, channel: &Channel) -> Result<(), TransferError> {
        let size = file.size.unwrap_or(0);
        let source = lock(&file.content).there().map(File::try_clone).transpose();
        let source = source.map_err(TransferError::system("reading what is there"))?;
        let Some(source) = source else { return Ok(()) };
        let pieces = covered(&source, size);
        let only = file.is_one_piece();
        let mut buffer = vec![0; PIECE_BYTES as usize];
        let mut first = 0;
        while first < pieces {
            let next = pieces.min(first + MAX_HASHES as u32);
            let mut hashes = Vec::with_capacity((next - first) as usize);
            for piece in first..next {
                let bytes = &mut buffer[..piece_length(size, piece) as usize];
                // What cannot be read counts as different.
                let read = source.read_exact_at(bytes, u64::from(piece) * PIECE_BYTES);
                hashes.push(read.map_or([0; 32], |()| piece_hash(piece, only, bytes)));
            }
            lock(&file.content).progress.had(first, &hashes);
            channel.tell(&Record::Hashes { entry: file.number, first, hashes })?;
            first = next;
        }
        Ok(())
    }
}

/// The announced length of a file; `None` for a stream.
fn announced(entry: &Entry) -> Option<u64> {
    match entry.kind {
        EntryKind::File { size, .. } => Some(size),
        _ => None,
    }
}

/// Whether what is there is a file of that length and time.
fn is_same(stat: &Stat, size: u64, modified: (i64, u32)) -> bool {
    stat.st_size as u64 == size
        && target::is(stat, FileType::RegularFile)
        && (stat.st_mtime, stat.st_mtime_nsec as u32) == modified
}

/// How many whole pieces of a file of `size` bytes `there` holds.
fn covered(there: &File, size: u64) -> u32 {
    let length = there.metadata().map_or(0, |metadata| metadata.len());
    let pieces = hash_tree::pieces(size.min(length));
    let whole = |pieces: u64| pieces * PIECE_BYTES <= length || length >= size;
    u32::try_from(if whole(pieces) { pieces } else { pieces - 1 }).unwrap_or(u32::MAX)
}

/// `path` with its first name replaced.
fn renamed(path: &RelativePath, name: &[u8]) -> Result<RelativePath, TransferError> {
    let bytes = path.as_bytes();
    let rest = bytes.iter().position(|byte| *byte == b'/').map_or(&b""[..], |at| &bytes[at..]);
    Ok(RelativePath::new([name, rest].concat())?)
}
