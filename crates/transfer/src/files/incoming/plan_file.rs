//! Decides which content of a file to request.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use sweetspot_protocol::hash_tree::{self, PIECE_BYTES};
use sweetspot_protocol::record::{Answer, Entry, EntryKind};
use sweetspot_units::Bytes;

use super::IncomingFiles;
use super::existing::{Compared, followed};
use super::file::IncomingFile;
use super::state::Fate;
use crate::files::quota::{STAT_BLOCK_BYTES, blocks_of, room_of, room_on_disk};
use crate::files::target::status::FileStatus;
use crate::files::target::{self, TargetDirectory};
use crate::limits::{MAX_SPARSE_BYTES, attribute_bytes};
use crate::lock::lock;
use crate::{Result, TransferError};

/// The answer to an entry, and its file if hashes are sent after it.
pub(super) type Planned = Result<(Answer, Option<Compared>)>;

impl IncomingFiles {
    pub(super) fn plan_file(&self, target: &TargetDirectory, number: u32, entry: Entry) -> Planned {
        let failed = |error| target::failed(&entry.path, error);
        let directory = entry.path.split().0;
        let is_new = directory.is_some_and(|path| lock(&self.state).made.contains(path));
        let current = if is_new { None } else { target.status(&entry.path).map_err(failed)? };
        self.check_special(target, &entry.path, current.as_ref())?;
        self.check_directory(target, &entry.path, current.as_ref())?;
        let size = announced(&entry);
        let shown = current.as_ref().filter(|stat| target.may_tell(stat));
        let same = !self.policy.checksum
            && shown.zip(size).is_some_and(|(stat, size)| is_same(stat, size, entry.modified));
        if same || current.is_some() && !self.policy.replace {
            // No transfer needs a partial file of this name any more.
            target.remove_leftover(&entry.path);
        }
        if let Some(stat) = shown.filter(|_| same) {
            let status = FileStatus::of(&entry);
            let is_outdated = self.may_be_outdated(&status, stat);
            let exact = self.policy.exact_attributes;
            let updated =
                is_outdated && target.update(&entry.path, &status, exact).map_err(failed)?;
            self.unchanged.fetch_add(stat.st_size as u64, Ordering::Relaxed);
            let mut state = lock(&self.state);
            state.whole.insert(number);
            state.count(Fate::of_attributes(updated));
            return Ok((Answer::Nothing, None));
        }
        if self.skips_existing(current.as_ref()) {
            lock(&self.state).count(Fate::Unchanged);
            return Ok((Answer::Nothing, None));
        }
        let mut file = IncomingFile::new(number, entry, size);
        check_size(&file)?;
        lock(&self.state).may_open(&file)?;
        let mut compared = None;
        if current.is_some() && shown.is_none() && !self.policy.replace {
            return Err(TransferError::Exists(file.path.to_string().into()));
        }
        if let Some(stat) = shown {
            let regular = target::is(stat, FileType::RegularFile);
            let comparable = regular && size == Some(stat.st_size as u64);
            if !self.policy.replace && !comparable {
                return Err(TransferError::Exists(file.path.to_string().into()));
            }
            file.compare_only = !self.policy.replace;
            if file.compare_only || regular && self.policy.checksum {
                compared = self.basis(target, &file)?;
                // Without pieces to compare, the whole content is requested. The sender then sends no end record for
                // one piece.
                compared = compared.filter(|current| file.compare_only || current.pieces > 0);
            }
        }
        if !file.compare_only {
            let left = self.resume(target, &mut file)?;
            compared = left.or(compared);
        }
        self.take_plan_room(target, &mut file, compared.is_some())?;
        let content = file.content.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        content.basis =
            compared.as_ref().filter(|current| !current.is_partial).map(|current| current.id);
        // An empty file is complete at once.
        let empty = size == Some(0) && !file.compare_only;
        let compares = file.compare_only;
        let file = lock(&self.state).open(file);
        if empty {
            self.finish(&file);
            return Ok((Answer::Nothing, None));
        }
        let pieces = compared.as_ref().map_or(0, |current| current.pieces);
        let answer = match pieces {
            pieces if compares => Answer::Compare { pieces },
            0 => Answer::All,
            pieces => Answer::Different { pieces },
        };
        Ok((answer, followed(compared, file)))
    }

    /// Whether an existing file with the right content may lack attributes and may be changed. Extended attributes are
    /// compared only later.
    pub(super) fn may_be_outdated(&self, status: &FileStatus, stat: &Stat) -> bool {
        let extended = self.policy.exact_attributes || !status.attributes.is_empty();
        self.policy.replace && (extended || !status.differences_from(stat).is_empty())
    }

    /// Whether a file is not wanted because its name exists and existing files are left alone.
    pub(super) fn skips_existing(&self, current: Option<&Stat>) -> bool {
        self.policy.leave && current.is_some()
    }

    /// Reserves quota for a file, and checks that the disk has space for it.
    fn take_plan_room(
        &self,
        target: &TargetDirectory,
        file: &mut IncomingFile,
        compares: bool,
    ) -> Result<()> {
        if file.compare_only {
            return Ok(());
        }
        let at_once = file.size.filter(|_| file.takes_room_at_once()).unwrap_or(0);
        let attributes = attribute_bytes(&file.status.attributes) as u64;
        let path = file.path.clone();
        let content = file.content.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        let partial = content.temp_file.as_ref().and_then(|temp| temp.file.metadata().ok());
        // An existing file keeps its quota until it is replaced, and an interrupted transfer's partial file has its
        // own.
        let left = partial.as_ref().map_or(0, room_on_disk);
        let room = (room_of(at_once) + blocks_of(attributes)).max(left);
        self.take_room(&path, room - left)?;
        content.room = room;
        if compares && partial.is_none() || at_once <= PIECE_BYTES {
            return Ok(());
        }
        // Fail now if the disk is full, before any content is sent.
        let held = partial.map_or(0, |partial| partial.blocks() * STAT_BLOCK_BYTES);
        let large = at_once.saturating_sub(held);
        let promised = self.promised.fetch_add(large, Ordering::Relaxed);
        (content.promised, content.reserved) = (large, held);
        if large > 0 && !target.has_room(Bytes::new(promised + large)) {
            self.release_promised(content, large);
            self.release_room(room - left);
            return Err(target::failed(&path, Errno::NOSPC.into()));
        }
        Ok(())
    }

    pub(super) fn plan_output(&self, number: u32, entry: Entry) -> Planned {
        if number > 0 || !entry.kind.has_content() {
            return Err(TransferError::OneOutput);
        }
        let size = announced(&entry);
        let file = IncomingFile::new(number, entry, size);
        check_size(&file)?;
        let file = lock(&self.state).open(file);
        if size == Some(0) {
            self.finish(&file);
            return Ok((Answer::Nothing, None));
        }
        Ok((Answer::All, None))
    }
}

/// Rejects files that are too large for the protocol or the file system.
fn check_size(file: &IncomingFile) -> Result<()> {
    let size = file.size.unwrap_or(0);
    if size > hash_tree::MAX_FILE_BYTES {
        return Err(target::failed(&file.path, Errno::FBIG.into()));
    }
    if file.sparse && size > MAX_SPARSE_BYTES {
        let reason = "it is a sparse file longer than 16 TiB; send it in an archive";
        return Err(TransferError::TooMuch { path: file.path.to_string().into(), reason });
    }
    Ok(())
}

/// The announced length of a file; `None` for a stream.
pub(super) fn announced(entry: &Entry) -> Option<u64> {
    match entry.kind {
        EntryKind::File { size, .. } => Some(size),
        _ => None,
    }
}

/// Whether an existing file has this length and time.
pub(super) fn is_same(stat: &Stat, size: u64, modified: (i64, u32)) -> bool {
    stat.st_size as u64 == size
        && target::is(stat, FileType::RegularFile)
        && (stat.st_mtime, stat.st_mtime_nsec as u32) == modified
}
