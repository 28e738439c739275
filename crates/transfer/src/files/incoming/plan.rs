//! Decides which content of each entry to ask for.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use sweetspot_protocol::hash_tree::{self, PIECE_BYTES, piece_hash, piece_length};
use sweetspot_protocol::record::{Answer, Entry, EntryKind, MAX_HASHES, Owner, Record};
use sweetspot_protocol::{ProtocolError, RelativePath};
use sweetspot_units::Bytes;

use super::file::{FileId, IncomingFile, Slot};
use super::kept::{LateDirectory, shortened};
use super::name_list::Announced;
use super::{Answers, Destination, IncomingFiles, exists_or};
use crate::TransferError;
use crate::files::quota::{STAT_BLOCK_BYTES, blocks_of, room_of, room_on_disk};
use crate::files::source::next_data;
use crate::files::target::{self, TargetDirectory};
use crate::limits::{
    FREE_COMPARED_PIECES, HOLES_PER_PIECE, MAX_ATTRIBUTE_BYTES, MAX_OPEN_FILES, MAX_SPARSE_BYTES,
    attribute_bytes,
};
use crate::lock::lock;

/// The answer to an entry, and its file if hashes follow.
type Planned = Result<(Answer, Option<Compared>), TransferError>;

impl IncomingFiles {
    /// Decides on the entries from number `first` on, and answers them.
    pub fn plan(
        &self,
        first: u32,
        entries: Vec<Entry>,
        sender: &dyn Answers,
    ) -> Result<(), TransferError> {
        lock(&self.expected).check(&entries)?;
        let mut answers = Vec::with_capacity(entries.len());
        for (number, entry) in (first..).zip(entries) {
            if self.is_over() {
                return Err(TransferError::Interrupted);
            }
            let path = entry.path.clone();
            let planned = self.plan_entry(number, entry);
            self.hand_over_early(number);
            let (answer, compared) = match planned {
                Ok(planned) => planned,
                Err(error) => {
                    self.note_failure(&path.to_string(), &error.to_string());
                    (Answer::Refused { reason: shortened(error.for_peer()).into() }, None)
                }
            };
            answers.push(answer);
            if let Some(Compared { file, there }) = compared {
                sender.tell(&Record::Answers(std::mem::take(&mut answers)))?;
                self.send_hashes(&file, &there, sender)?;
            }
        }
        if !answers.is_empty() {
            sender.tell(&Record::Answers(answers))?;
        }
        let full = lock(&self.state).open.len() > MAX_OPEN_FILES;
        let (what, when) = ("entries", "too far ahead");
        if full { Err(ProtocolError::OutOfOrder { what, when }.into()) } else { Ok(()) }
    }

    /// Passes content that arrived before the decision to its file, or drops it if nothing is wanted.
    fn hand_over_early(&self, number: u32) {
        let (early, file) = {
            let mut state = lock(&self.state);
            state.planned = number + 1;
            (state.early.remove(&number), state.open.get(&number).cloned())
        };
        if let Some((early, file)) = early.zip(file) {
            lock(&file.content).early = early;
        }
    }

    fn plan_entry(&self, number: u32, mut entry: Entry) -> Planned {
        if !self.policy.attributes && !entry.attributes.is_empty() {
            lock(&self.state).attributes_left_out = true;
            entry.attributes.clear();
        }
        // Others are the system's: capabilities, labels, access lists.
        entry.attributes.retain(|(name, _)| name.starts_with(b"user."));
        entry.owner = entry.owner.filter(|_| self.policy.owners).map(|owner| {
            let (user, group) = self.accounts.numbers(&owner);
            Box::new(Owner { user, group, ..*owner })
        });
        let Destination::Directory { target, top_name } = &self.destination else {
            return self.plan_output(number, entry);
        };
        let sent_as = entry.path.clone();
        if let Some(name) = top_name {
            entry.path = renamed(&entry.path, name)?;
        }
        self.note_listed(&entry.path, &sent_as);
        self.check_dotfile(target, &entry.path, top_name.is_some())?;
        if self.policy.dry_run {
            return self.plan_dry_run(target, number, entry);
        }
        if attribute_bytes(&entry.attributes) > MAX_ATTRIBUTE_BYTES {
            let reason = "its extended attributes are longer than 64 KiB; send it without them";
            return Err(TransferError::TooMuch { path: entry.path.to_string().into(), reason });
        }
        self.remember(number, &entry)?;
        let path = entry.path.clone();
        let planned = match &entry.kind {
            EntryKind::Directory => self.plan_directory(target, number, entry),
            EntryKind::Symlink { target: to } => {
                let depth = path.depth().saturating_sub(usize::from(top_name.is_some()));
                if !self.policy.outward_links && leads_out(to, depth) {
                    return Err(TransferError::LeadsOut(path.to_string().into()));
                }
                let planned = self.plan_symlink(target, &path, to, entry.modified)?;
                self.give_owner(target, &entry)?;
                Ok(planned)
            }
            EntryKind::HardLink { to } => {
                self.take_room(&path, room_of(0))?;
                lock(&self.state).hard_links.push((number, *to));
                Ok((Answer::Nothing, None))
            }
            EntryKind::File { .. } | EntryKind::Stream => self.plan_file(target, number, entry),
        };
        planned.map_err(|error| self.concealed(&path, error))
    }

    /// Refuses a name that begins with a dot, where no transfer of this process made the directory.
    fn check_dotfile(
        &self,
        target: &TargetDirectory,
        path: &RelativePath,
        top_is_chosen: bool,
    ) -> Result<(), TransferError> {
        if self.policy.dotfiles {
            return Ok(());
        }
        let bytes = path.as_bytes();
        let starts = std::iter::once(0).chain(
            bytes.iter().enumerate().filter_map(|(at, byte)| (*byte == b'/').then_some(at + 1)),
        );
        for start in starts {
            if bytes[start] != b'.' || start == 0 && top_is_chosen {
                continue;
            }
            let parent = (start > 0).then(|| &bytes[..start - 1]);
            let new = parent.is_some_and(|parent| lock(&self.state).made.contains(parent));
            let allowed = new
                || match target.was_made(parent) {
                    Ok(made) => made,
                    // A dry run makes no directories.
                    Err(_) => self.policy.dry_run,
                };
            if !allowed {
                return Err(TransferError::Dotfile(path.to_string().into()));
            }
        }
        Ok(())
    }

    /// The error as the peer may learn it: without the right to read, not the kind of file in the way.
    fn concealed(&self, path: &RelativePath, error: TransferError) -> TransferError {
        let tells = match &error {
            TransferError::IsDirectory(_) | TransferError::NotADirectory(_) => true,
            TransferError::Write { source, .. } => source.raw_os_error().is_some_and(|code| {
                [Errno::NOTDIR, Errno::LOOP, Errno::ISDIR, Errno::XDEV, Errno::ACCESS, Errno::NXIO]
                    .contains(&Errno::from_raw_os_error(code))
            }),
            _ => false,
        };
        if tells && self.bounds.view.own_only {
            return TransferError::Exists(path.to_string().into());
        }
        error
    }

    /// Keeps the name of an entry, and a file's announced properties, for later entries that refer to it.
    fn remember(&self, number: u32, entry: &Entry) -> Result<(), TransferError> {
        let (file, extra) = match &entry.kind {
            EntryKind::File { .. } | EntryKind::Stream => {
                (Some(Announced { size: announced(entry), modified: entry.modified.0 }), 0)
            }
            EntryKind::Directory => (None, size_of::<LateDirectory>()),
            EntryKind::HardLink { .. } => (None, size_of::<(u32, u32)>()),
            EntryKind::Symlink { .. } => return Ok(()),
        };
        if lock(&self.state).names.push(number, &entry.path, file, extra) || file.is_some() {
            // A file alone needs no list: only further names of it are refused then.
            return Ok(());
        }
        let reason = "names in one transfer are too long together; send it in parts";
        Err(TransferError::TooMuch { path: entry.path.to_string().into(), reason })
    }

    fn plan_directory(&self, target: &TargetDirectory, number: u32, entry: Entry) -> Planned {
        self.take_room(&entry.path, room_of(0))?;
        let new =
            target.make_directory(&entry.path, entry.mode).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => {
                    TransferError::NotADirectory(entry.path.to_string().into())
                }
                _ => target::failed(&entry.path, error),
            });
        if !matches!(new, Ok(true)) {
            self.give_room_back(room_of(0));
        }
        let new = new?;
        if new && !self.policy.dotfiles {
            let noted = target.note_made(Some(entry.path.as_bytes()));
            noted.map_err(|error| target::failed(&entry.path, error))?;
        }
        let mut state = lock(&self.state);
        if new {
            state.made.insert(entry.path.as_bytes());
        }
        // An existing file keeps its mode and time if nothing may be replaced.
        if new || self.policy.replace {
            let (mode, modified, depth) = (entry.mode, entry.modified, entry.path.depth());
            let owner = entry.owner.map(|owner| (owner.user, owner.group));
            state.directories.push(LateDirectory { number, mode, modified, owner, depth });
        }
        Ok((Answer::Nothing, None))
    }

    fn plan_symlink(
        &self,
        target: &TargetDirectory,
        path: &RelativePath,
        to: &[u8],
        modified: (i64, u32),
    ) -> Planned {
        self.take_room(path, room_of(0))?;
        let new = self
            .replacing(target, path, || target.make_symlink(path, to, self.policy.replace))
            .map_err(|error| exists_or(path, error));
        if !matches!(new, Ok(true)) {
            self.give_room_back(room_of(0));
        }
        let new = new?;
        if new {
            target.finish_symlink(path, modified);
        }
        lock(&self.state).count(new);
        Ok((Answer::Nothing, None))
    }

    /// Gives something that is there the owner that it has at the sender, if it may be changed.
    fn give_owner(&self, target: &TargetDirectory, entry: &Entry) -> Result<(), TransferError> {
        let owner = entry.owner.as_ref().filter(|_| self.policy.replace);
        let Some(owner) = owner.map(|owner| (owner.user, owner.group)) else { return Ok(()) };
        target.give_owner(&entry.path, owner).map_err(|error| target::failed(&entry.path, error))
    }

    /// The files that would be wanted; writes nothing.
    fn plan_dry_run(&self, target: &TargetDirectory, number: u32, entry: Entry) -> Planned {
        // Where the directory is not there, nothing in it is.
        let there = target.status(&entry.path).unwrap_or(None);
        let size = match entry.kind {
            EntryKind::File { size, .. } => size,
            EntryKind::Stream => 0,
            _ => return Ok((Answer::Nothing, None)),
        };
        let shown = there.as_ref().filter(|stat| target.may_tell(stat));
        let same = shown.is_some_and(|stat| is_same(stat, size, entry.modified));
        if same && !self.policy.checksum {
            lock(&self.state).count(false);
            return Ok((Answer::Nothing, None));
        }
        let regular = shown.is_some_and(|stat| target::is(stat, FileType::RegularFile));
        if regular && self.policy.checksum && there.is_some_and(|s| s.st_size as u64 == size) {
            let mut file = IncomingFile::new(number, entry, Some(size));
            file.compare_only = true;
            lock(&self.state).may_open(&file)?;
            let compared = self.basis(target, &file)?;
            let pieces = compared.as_ref().map_or(0, |compared| compared.pieces);
            let file = lock(&self.state).open(file);
            return Ok((Answer::Compare { pieces }, followed(compared, file)));
        }
        if there.is_some() && !self.policy.replace {
            return Err(TransferError::Exists(entry.path.to_string().into()));
        }
        lock(&self.state).would_move.add(format!("{} ({})", entry.path, Bytes::new(size)));
        Ok((Answer::All, None))
    }

    fn plan_file(&self, target: &TargetDirectory, number: u32, entry: Entry) -> Planned {
        let failed = |error| target::failed(&entry.path, error);
        let directory = entry.path.split().0;
        let is_new = directory.is_some_and(|path| lock(&self.state).made.contains(path));
        let there = if is_new { None } else { target.status(&entry.path).map_err(failed)? };
        let size = announced(&entry);
        let shown = there.as_ref().filter(|stat| target.may_tell(stat));
        let same = !self.policy.checksum
            && shown.zip(size).is_some_and(|(stat, size)| is_same(stat, size, entry.modified));
        if same || there.is_some() && !self.policy.replace {
            // No transfer could give it its name, or need to.
            target.remove_leftover(&entry.path);
        }
        if same {
            self.give_owner(target, &entry)?;
            let mut state = lock(&self.state);
            state.whole.insert(number);
            state.count(false);
            return Ok((Answer::Nothing, None));
        }
        let mut file = IncomingFile::new(number, entry, size);
        check_size(&file)?;
        lock(&self.state).may_open(&file)?;
        let mut compared = None;
        let hidden = there.as_ref().filter(|_| shown.is_none());
        if hidden.is_some_and(|s| !self.policy.replace || target::is(s, FileType::Directory)) {
            return Err(TransferError::Exists(file.path.to_string().into()));
        }
        if let Some(stat) = shown {
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
                compared = self.basis(target, &file)?;
            }
        }
        if !file.compare_only {
            let left = self.resume(target, &mut file)?;
            compared = left.or(compared);
        }
        self.take_plan_room(target, &mut file, compared.is_some())?;
        let content = file.content.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        content.basis = compared.as_ref().filter(|there| !there.is_partial).map(|there| there.id);
        // Nothing to wait for: an empty file is whole at once.
        let empty = size == Some(0) && !file.compare_only;
        let compares = file.compare_only;
        let file = lock(&self.state).open(file);
        if empty {
            self.finish(&file);
            return Ok((Answer::Nothing, None));
        }
        let pieces = compared.as_ref().map_or(0, |there| there.pieces);
        let answer = match pieces {
            pieces if compares => Answer::Compare { pieces },
            0 => Answer::All,
            pieces => Answer::Different { pieces },
        };
        Ok((answer, followed(compared, file)))
    }

    /// The existing content to compare with the sender's. `None` if this transfer has already compared it: a peer cannot have
    /// the same content read again and again.
    fn basis(
        &self,
        target: &TargetDirectory,
        file: &IncomingFile,
    ) -> Result<Option<There>, TransferError> {
        let failed = |error| target::failed(&file.path, error);
        let source = target.open_file(&file.path).map_err(failed)?;
        let metadata = source.metadata().map_err(failed)?;
        let id = (metadata.dev(), metadata.ino());
        if metadata.len() > PIECE_BYTES && !lock(&self.state).compared.insert(id) {
            return Ok(None);
        }
        let pieces = compared(&metadata, file.size.unwrap_or(0));
        Ok(Some(There { source, pieces, id, is_partial: false }))
    }

    /// The remains of an interrupted transfer, to resume from.
    fn resume(
        &self,
        target: &TargetDirectory,
        file: &mut IncomingFile,
    ) -> Result<Option<There>, TransferError> {
        let failed = |error| exists_or(&file.path, error);
        let size = file.size.unwrap_or(0);
        if hash_tree::pieces(size) <= 1 || !target.has_temp_file(&file.path) {
            return Ok(None);
        }
        // Where too many are open it begins anew.
        let Some(slot) = Slot::take(&self.descriptors) else { return Ok(None) };
        let temp_file = Arc::new(target.temp_file(&file.path, self.keep()).map_err(failed)?);
        let source = temp_file.file.try_clone().map_err(failed)?;
        let metadata = source.metadata().map_err(failed)?;
        let content = file.content.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        (content.temp_file, content.slot) = (Some(temp_file), Some(slot));
        let (pieces, id) = (compared(&metadata, size), (metadata.dev(), metadata.ino()));
        Ok(Some(There { source, pieces, id, is_partial: true }))
    }

    /// Takes room of the quota for a file, and finds out whether the disk has room for it.
    fn take_plan_room(
        &self,
        target: &TargetDirectory,
        file: &mut IncomingFile,
        compares: bool,
    ) -> Result<(), TransferError> {
        if file.compare_only {
            return Ok(());
        }
        let at_once = file.size.filter(|_| file.takes_room_at_once()).unwrap_or(0);
        let attributes = attribute_bytes(&file.status.attributes) as u64;
        let path = file.path.clone();
        let content = file.content.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        let partial = content.temp_file.as_ref().and_then(|temp| temp.file.metadata().ok());
        // The existing file keeps its quota until it is replaced; the interrupted transfer's remains hold their own.
        let left = partial.as_ref().map_or(0, room_on_disk);
        let room = (room_of(at_once) + blocks_of(attributes)).max(left);
        self.take_room(&path, room - left)?;
        content.room = room;
        if compares && partial.is_none() || at_once <= PIECE_BYTES {
            return Ok(());
        }
        // A full disk is known at once, before anything is sent.
        let held = partial.map_or(0, |partial| partial.blocks() * STAT_BLOCK_BYTES);
        let large = at_once.saturating_sub(held);
        let promised = self.promised.fetch_add(large, Ordering::Relaxed);
        (content.promised, content.reserved) = (large, held);
        if large > 0 && !target.has_room(Bytes::new(promised + large)) {
            self.release_promised(content, large);
            self.give_room_back(room - left);
            return Err(target::failed(&path, Errno::NOSPC.into()));
        }
        Ok(())
    }

    fn plan_output(&self, number: u32, entry: Entry) -> Planned {
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

    /// Sends the hashes of an existing file.
    fn send_hashes(
        &self,
        file: &IncomingFile,
        there: &There,
        answers: &dyn Answers,
    ) -> Result<(), TransferError> {
        let size = file.size.unwrap_or(0);
        let only = file.is_one_piece();
        let mut buffer = vec![0; PIECE_BYTES as usize];
        let (mut first, mut data) = (0, 0);
        while first < there.pieces {
            let next = there.pieces.min(first + MAX_HASHES as u32);
            let mut hashes = Vec::with_capacity((next - first) as usize);
            for piece in first..next {
                if self.is_over() {
                    return Err(TransferError::Interrupted);
                }
                let (from, length) = (u64::from(piece) * PIECE_BYTES, piece_length(size, piece));
                let bytes = &mut buffer[..length as usize];
                if data <= from {
                    data = next_data(&there.source, from, u64::MAX);
                }
                let is_hole = data >= from + length && !only;
                if is_hole {
                    bytes.fill(0);
                } else if there.source.read_exact_at(bytes, from).is_err() {
                    // An unreadable piece counts as different.
                    hashes.push([0; 32]);
                    continue;
                }
                let hash = piece_hash(piece, only, bytes);
                match is_hole {
                    true => lock(&file.content).progress.had_hole(piece),
                    false => lock(&file.content).progress.had(piece, &[hash]),
                }
                hashes.push(hash);
            }
            answers.tell(&Record::Hashes { entry: file.number, first, hashes })?;
            first = next;
        }
        Ok(())
    }
}

/// The existing file.
struct There {
    source: File,
    /// How many of its first pieces are compared.
    pieces: u32,
    id: FileId,
    /// An interrupted transfer left it; else it is the file itself.
    is_partial: bool,
}

/// A file with hashes that follow its answer.
struct Compared {
    file: Arc<IncomingFile>,
    there: There,
}

/// The file that hashes follow, if any.
fn followed(there: Option<There>, file: Arc<IncomingFile>) -> Option<Compared> {
    there.filter(|there| there.pieces > 0).map(|there| Compared { file, there })
}

/// Files that no protocol or file system holds are refused.
fn check_size(file: &IncomingFile) -> Result<(), TransferError> {
    let size = file.size.unwrap_or(0);
    if size > hash_tree::MAX_FILE_BYTES {
        return Err(target::failed(&file.path, Errno::FBIG.into()));
    }
    if file.sparse && size > MAX_SPARSE_BYTES {
        let reason = "a sparse file may be 16 TiB long at most; send it packed";
        return Err(TransferError::TooMuch { path: file.path.to_string().into(), reason });
    }
    Ok(())
}

/// The announced length of a file; `None` for a stream.
fn announced(entry: &Entry) -> Option<u64> {
    match entry.kind {
        EntryKind::File { size, .. } => Some(size),
        _ => None,
    }
}

/// Whether a symbolic link to `to`, in a directory of this depth, leads out of the transfer's. A name within `to` may be
/// a link that leads upwards, so `..` is good only at its start.
fn leads_out(to: &[u8], depth: usize) -> bool {
    let names: Vec<&[u8]> =
        to.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    let upwards = names.iter().take_while(|name| **name == b"..").count();
    to.starts_with(b"/") || upwards > depth || names[upwards..].contains(&&b".."[..])
}

/// Whether a file of that length and time exists.
fn is_same(stat: &Stat, size: u64, modified: (i64, u32)) -> bool {
    stat.st_size as u64 == size
        && target::is(stat, FileType::RegularFile)
        && (stat.st_mtime, stat.st_mtime_nsec as u32) == modified
}

/// The number of whole pieces of a file of `size` bytes to compare with the existing file. Holes cost time but no disk: a file
/// may have this many for each piece of content.
fn compared(there: &Metadata, size: u64) -> u32 {
    let length = there.len();
    let pieces = hash_tree::pieces(size.min(length));
    let whole = |pieces: u64| pieces * PIECE_BYTES <= length || length >= size;
    let covered = if whole(pieces) { pieces } else { pieces - 1 };
    let content = hash_tree::pieces(there.blocks() * STAT_BLOCK_BYTES);
    let max = FREE_COMPARED_PIECES + content.saturating_mul(HOLES_PER_PIECE);
    u32::try_from(covered.min(max)).unwrap_or(u32::MAX)
}

/// `path` with its first name replaced.
fn renamed(path: &RelativePath, name: &[u8]) -> Result<RelativePath, TransferError> {
    let bytes = path.as_bytes();
    let rest = bytes.iter().position(|byte| *byte == b'/').map_or(&b""[..], |at| &bytes[at..]);
    Ok(RelativePath::new([name, rest].concat())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_out_if_it_may_resolve_above_the_directory() {
        // The target, the depth of the link's directory, and whether it leads out.
        for (to, depth, out) in [
            ("/etc", 3, true),
            ("a/b", 0, false),
            ("./a", 0, false),
            ("..", 0, true),
            ("..", 1, false),
            ("../a", 1, false),
            ("./../../a", 1, true),
            ("../../a", 2, false),
            // Where "a" is a link to "..", this is above the directory.
            ("a/..", 1, true),
            ("../a/../b", 2, true),
            ("...", 0, false),
        ] {
            assert_eq!(leads_out(to.as_bytes(), depth), out, "{to} at {depth}");
        }
    }
}
