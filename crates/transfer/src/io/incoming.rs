//! Files on their way in: what is wanted of each, where its pieces go, and what became of it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex};

use crossbeam_channel::{Receiver, Sender};
use rustix::fs::{FallocateFlags, FileType};
use rustix::io::Errno;
use sweetspot_linux::file;
use sweetspot_protocol::frame::PieceHeader;
use sweetspot_protocol::hash_tree::{self, PIECE_BYTES, piece_hash, piece_length};
use sweetspot_protocol::record::{
    Answer, Entry, EntryKind, FileEnd, FileResult, MAX_HASHES, Record,
};
use sweetspot_protocol::{FileCounts, FileProgress, ProtocolError, RelativePath};
use sweetspot_units::Bytes;

use super::channel::{Channel, lock};
use super::target::{self, FileStatus, TargetDirectory, TempFile};
use crate::TransferError;

/// What is written is sent to the disk in portions, so that little is left for the final fsync.
const WRITEBACK_BYTES: u64 = 8 << 20;
/// The most files that may be wanted and not yet whole: honest senders list no further ahead than that.
const MAX_OPEN_FILES: usize = 1 << 16;
/// How many failures are kept in words.
const MAX_FAILURES: usize = 100;

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

/// All files of a transfer at its receiver.
pub(crate) struct IncomingFiles {
    destination: Destination,
    policy: Policy,
    state: Mutex<State>,
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
    counts: FileCounts,
    failures: Vec<String>,
    content: Bytes,
    /// The hash of the last file, and how many had one.
    hash: Option<blake3::Hash>,
    small_files: bool,
    would_move: Vec<String>,
}

/// One file on its way in.
struct IncomingFile {
    number: u32,
    path: RelativePath,
    mode: u32,
    modified: (i64, u32),
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
    /// `None` for a stream.
    size: Option<u64>,
    sparse: bool,
    /// What is there may not be replaced: only whether it is the same is asked.
    compare_only: bool,
    /// Held while a piece is written: the kernel writes one at a time, too, and who waits there spins.
    writing: Mutex<()>,
    content: Mutex<Content>,
}

struct Content {
    progress: FileProgress,
    temp_file: Option<Arc<TempFile>>,
    /// What is there, from which pieces are taken that the sender need not send.
    basis: Option<File>,
    /// Pieces that are being written.
    writing: u32,
    unflushed: u64,
    /// A thread has found it whole, and gives it its name.
    finishing: bool,
}

/// A piece of work for the threads that hash and write.
pub(crate) enum Job {
    Piece(PieceHeader, Vec<u8>),
    /// Several small ones.
    Pieces(Vec<(PieceHeader, Vec<u8>)>),
    Holes(u32, u32, u32),
}

impl IncomingFiles {
    pub fn new(destination: Destination, policy: Policy) -> IncomingFiles {
        let (state, idle) = (Mutex::default(), Condvar::new());
        IncomingFiles { destination, policy, state, idle }
    }

    /// Decides what is wanted of the entries from number `first` on, and answers them.
    pub fn plan(
        &self,
        first: u32,
        entries: Vec<Entry>,
        channel: &Channel,
    ) -> Result<(), TransferError> {
        let mut answers = Vec::with_capacity(entries.len());
        for (number, entry) in (first..).zip(entries) {
            let path = entry.path.to_string();
            let planned = self.plan_entry(number, entry);
            let (answer, basis) = match planned {
                Ok(planned) => planned,
                Err(error) => {
                    let reason = error.to_string();
                    self.note_failure(&path, &reason);
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

    fn plan_entry(
        &self,
        number: u32,
        mut entry: Entry,
    ) -> Result<(Answer, Option<Arc<IncomingFile>>), TransferError> {
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
        let made = |new: bool| {
            let mut state = lock(&self.state);
            state.counts.unchanged += u64::from(!new);
            Ok((Answer::Nothing, None))
        };
        match &entry.kind {
            EntryKind::Directory => {
                let new =
                    target.make_directory(&entry.path, entry.mode).map_err(|error| match error
                        .kind()
                    {
                        io::ErrorKind::AlreadyExists => {
                            TransferError::NotADirectory(entry.path.to_string().into())
                        }
                        _ => failed(error),
                    })?;
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
                let new = target
                    .make_symlink(&entry.path, to, self.policy.replace)
                    .map_err(|error| exists_or(&entry.path, error))?;
                let _ = target.set_link_time(&entry.path, entry.modified);
                lock(&self.state).counts.written += u64::from(new);
                made(new)
            }
            EntryKind::HardLink { to } => {
                lock(&self.state).hard_links.push((entry.path, *to));
                Ok((Answer::Nothing, None))
            }
            EntryKind::File { .. } | EntryKind::Stream => self.plan_file(target, number, entry),
        }
    }

    /// What would be wanted, without writing anything.
    fn plan_dry_run(
        &self,
        target: &TargetDirectory,
        number: u32,
        entry: Entry,
    ) -> Result<(Answer, Option<Arc<IncomingFile>>), TransferError> {
        // Where the directory is not there, nothing in it is.
        let there = target.status(&entry.path).unwrap_or(None);
        let size = match entry.kind {
            EntryKind::File { size, .. } => size,
            EntryKind::Stream => 0,
            _ => return Ok((Answer::Nothing, None)),
        };
        let same = there.as_ref().is_some_and(|stat| is_same(stat, size, entry.modified));
        if same && !self.policy.checksum {
            lock(&self.state).counts.unchanged += 1;
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

    /// What would have been written.
    pub fn would_move(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.state).would_move)
    }

    fn plan_file(
        &self,
        target: &TargetDirectory,
        number: u32,
        entry: Entry,
    ) -> Result<(Answer, Option<Arc<IncomingFile>>), TransferError> {
        let failed = |error| target::failed(&entry.path, error);
        let directory = entry.path.split().0;
        let is_new = directory.is_some_and(|path| lock(&self.state).made.contains(path));
        let there = if is_new { None } else { target.status(&entry.path).map_err(failed)? };
        lock(&self.state).paths.insert(number, entry.path.clone());
        let size = match entry.kind {
            EntryKind::File { size, .. } => Some(size),
            _ => None,
        };
        if let (Some(stat), Some(size)) = (&there, size)
            && is_same(stat, size, entry.modified)
            && !self.policy.checksum
        {
            lock(&self.state).counts.unchanged += 1;
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
        let too_large = size.is_some_and(|size| size > hash_tree::MAX_FILE_BYTES);
        if too_large {
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
        if content.temp_file.is_none() && content.basis.is_none() && !file.sparse {
            // Known at once, before anything is sent.
            let large = size.filter(|size| *size > PIECE_BYTES);
            if large.is_some_and(|size| !target.has_room(Bytes::new(size))) {
                return Err(target::failed(&file.path, Errno::NOSPC.into()));
            }
        }
        let hashes = match (&content.temp_file, &content.basis) {
            (Some(temp_file), _) => covered(&temp_file.file, size.unwrap_or(0)),
            (None, Some(basis)) => covered(basis, size.unwrap_or(0)),
            (None, None) => 0,
        };
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

    fn plan_output(
        &self,
        number: u32,
        entry: Entry,
    ) -> Result<(Answer, Option<Arc<IncomingFile>>), TransferError> {
        if number > 0 || !entry.kind.has_content() {
            return Err(TransferError::OneOutput);
        }
        let size = match entry.kind {
            EntryKind::File { size, .. } => Some(size),
            _ => None,
        };
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
        let temp_file = lock(&file.content).temp_file.clone();
        let basis = lock(&file.content).basis.as_ref().map(File::try_clone).transpose();
        let basis = basis.map_err(TransferError::system("reading what is there"))?;
        let source = match (&temp_file, &basis) {
            (Some(temp_file), _) => &temp_file.file,
            (None, Some(basis)) => basis,
            (None, None) => return Ok(()),
        };
        let pieces = covered(source, size);
        let only = hash_tree::pieces(size) == 1;
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

    /// Hashes and writes what `jobs` bring, until there are no more. Buffers go back to `spent`.
    pub fn work(&self, jobs: &Receiver<Job>, spent: &Sender<Vec<u8>>) -> Result<(), TransferError> {
        for job in jobs {
            match job {
                Job::Piece(header, mut bytes) => {
                    self.take_piece(&header, &bytes)?;
                    bytes.clear();
                    let _ = spent.try_send(bytes);
                }
                Job::Pieces(pieces) => {
                    pieces.iter().try_for_each(|(header, bytes)| self.take_piece(header, bytes))?;
                }
                Job::Holes(entry, first, pieces) => self.take_holes(entry, first, pieces)?,
            }
        }
        Ok(())
    }

    fn take_piece(&self, header: &PieceHeader, bytes: &[u8]) -> Result<(), TransferError> {
        let Some(file) = self.file(header.entry)? else { return Ok(()) };
        let only = file.size.is_some_and(|size| hash_tree::pieces(size) == 1);
        let hash = piece_hash(header.piece, only, bytes);
        let whole = || file.size.is_none() && header.piece == 0;
        if hash != header.hash && !(whole() && piece_hash(0, true, bytes) == header.hash) {
            self.give_up(&file, "its content was damaged on the way");
            return Ok(());
        }
        if matches!(self.destination, Destination::Output)
            && header.piece != lock(&file.content).progress.pieces_came()
        {
            let what = "out of order, to standard output";
            return Err(ProtocolError::Piece { piece: header.piece, what }.into());
        }
        if only && self.is_plain(&file) {
            return self.take_small(&file, header, bytes);
        }
        let temp_file = {
            let mut content = lock(&file.content);
            content.progress.handle_piece(header.piece, bytes.len() as u64, header.hash)?;
            content.writing += 1;
            match self.temp_file(&file, &mut content) {
                Ok(temp_file) => temp_file,
                Err(error) => {
                    drop(content);
                    self.give_up(&file, &error.to_string());
                    return Ok(());
                }
            }
        };
        let offset = u64::from(header.piece) * PIECE_BYTES;
        let written = {
            let _one_at_a_time = lock(&file.writing);
            match &temp_file {
                Some(temp_file) => temp_file.file.write_all_at(bytes, offset),
                None => io::stdout().write_all(bytes),
            }
        };
        if let Err(error) = written {
            self.give_up(&file, &target::failed(&file.path, error).to_string());
            return Ok(());
        }
        self.note_written(&file, bytes.len() as u64, temp_file.as_deref());
        Ok(())
    }

    /// Whether a file is written whole and anew, into a directory.
    fn is_plain(&self, file: &IncomingFile) -> bool {
        let content = lock(&file.content);
        matches!(self.destination, Destination::Directory { .. })
            && content.basis.is_none()
            && content.temp_file.is_none()
            && !file.compare_only
    }

    /// All of a file came in one piece.
    fn take_small(
        &self,
        file: &Arc<IncomingFile>,
        header: &PieceHeader,
        bytes: &[u8],
    ) -> Result<(), TransferError> {
        let Destination::Directory { target, .. } = &self.destination else { return Ok(()) };
        let length = bytes.len() as u64;
        {
            let mut content = lock(&file.content);
            content.progress.handle_piece(header.piece, length, header.hash)?;
            content.finishing = true;
        }
        let status =
            FileStatus { mode: file.mode, modified: file.modified, attributes: &file.attributes };
        let written = target.write_small(&file.path, bytes, &status, self.policy.replace);
        if let Err(error) = written {
            self.give_up(file, &exists_or(&file.path, error).to_string());
            return Ok(());
        }
        {
            let mut state = lock(&self.state);
            state.content += Bytes::new(length);
            state.small_files = true;
        }
        self.close(file, Ok((blake3::Hash::from_bytes(header.hash), true)));
        Ok(())
    }

    fn note_written(&self, file: &Arc<IncomingFile>, length: u64, temp_file: Option<&TempFile>) {
        lock(&self.state).content += Bytes::new(length);
        let complete = {
            let mut content = lock(&file.content);
            content.writing -= 1;
            if let Some(temp_file) = temp_file {
                temp_file.holds_content();
            }
            content.unflushed += length;
            if content.unflushed >= WRITEBACK_BYTES {
                content.unflushed = 0;
                if let Some(temp_file) = temp_file {
                    file::start_writeback(&temp_file.file, 0, 0);
                }
            }
            file.becomes_complete(&mut content)
        };
        if complete {
            self.finish(file);
        }
    }

    fn take_holes(&self, entry: u32, first: u32, pieces: u32) -> Result<(), TransferError> {
        let Some(file) = self.file(entry)? else { return Ok(()) };
        let Some(size) = file.size else {
            return Err(ProtocolError::NoEntry(entry).into());
        };
        let zeros = vec![0; PIECE_BYTES as usize];
        let only = hash_tree::pieces(size) == 1;
        let last = u64::from(first) + u64::from(pieces);
        if last > hash_tree::pieces(size) {
            return Err(ProtocolError::Piece { piece: first, what: "beyond the end" }.into());
        }
        let failed = {
            let mut content = lock(&file.content);
            for piece in first..first + pieces {
                let length = piece_length(size, piece);
                let hash = piece_hash(piece, only, &zeros[..length as usize]);
                content.progress.handle_piece(piece, length, hash)?;
            }
            let resumed = content.temp_file.is_some() || content.basis.is_some();
            match self.temp_file(&file, &mut content) {
                Ok(Some(temp_file)) if resumed => {
                    let from = u64::from(first) * PIECE_BYTES;
                    let to = (last * PIECE_BYTES).min(size);
                    clear(&temp_file.file, from, to - from, &zeros)
                        .err()
                        .map(|error| target::failed(&file.path, error))
                }
                Ok(_) => None,
                Err(error) => Some(error),
            }
        };
        match failed {
            Some(error) => self.give_up(&file, &error.to_string()),
            None if file.becomes_complete(&mut lock(&file.content)) => self.finish(&file),
            None => {}
        }
        Ok(())
    }

    /// The sender has sent all of a file that was asked for.
    pub fn take_end(&self, end: &FileEnd) -> Result<(), TransferError> {
        let Some(file) = self.file(end.entry)? else { return Ok(()) };
        let complete = {
            let mut content = lock(&file.content);
            content.progress.handle_end(end)?;
            file.becomes_complete(&mut content)
        };
        if complete {
            self.finish(&file);
        }
        Ok(())
    }

    /// The sender cannot deliver an entry.
    pub fn take_gone(&self, entry: u32, reason: &str) -> Result<(), TransferError> {
        if let Some(file) = self.file(entry)? {
            self.give_up(&file, reason);
        }
        Ok(())
    }

    fn file(&self, number: u32) -> Result<Option<Arc<IncomingFile>>, TransferError> {
        let state = lock(&self.state);
        match state.open.get(&number) {
            Some(file) => Ok(Some(Arc::clone(file))),
            None if state.given_up.contains(&number) => Ok(None),
            None => Err(ProtocolError::NoEntry(number).into()),
        }
    }

    /// The file to write to; `None` if content goes to standard output.
    fn temp_file(
        &self,
        file: &IncomingFile,
        content: &mut Content,
    ) -> Result<Option<Arc<TempFile>>, TransferError> {
        let Destination::Directory { target, .. } = &self.destination else { return Ok(None) };
        if let Some(temp_file) = &content.temp_file {
            return Ok(Some(Arc::clone(temp_file)));
        }
        if file.compare_only {
            let (what, when) = ("content", "of a file that was only to be compared");
            return Err(ProtocolError::OutOfOrder { what, when }.into());
        }
        let failed = |error| exists_or(&file.path, error);
        let several = file.size.is_none_or(|size| size > PIECE_BYTES);
        let temp_file =
            target.temp_file(&file.path, several && file.size.is_some()).map_err(failed)?;
        temp_file.file.set_len(0).map_err(failed)?;
        if let Some(basis) = &content.basis {
            copy(basis, &temp_file.file).map_err(failed)?;
        }
        if several && !file.sparse {
            temp_file.reserve(Bytes::new(file.size.unwrap_or(0))).map_err(failed)?;
        }
        let temp_file = Arc::new(temp_file);
        content.temp_file = Some(Arc::clone(&temp_file));
        Ok(Some(temp_file))
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
        match self.put_in_place(file) {
            Ok(written) => self.close(file, Ok((hash, written))),
            Err(error) => self.give_up(file, &error.to_string()),
        }
    }

    /// Gives a file its mode, its time and its name. Returns whether it was written.
    fn put_in_place(&self, file: &IncomingFile) -> Result<bool, TransferError> {
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
                set_status(&basis, file).map_err(failed)?;
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
        for (name, value) in &file.attributes {
            temp_file.set_attribute(name, value).map_err(failed)?;
        }
        temp_file.set_status(file.mode, file.modified).map_err(failed)?;
        let large = file.size.is_none_or(|size| size > PIECE_BYTES);
        if large {
            // Its content before its name, so that a power cut never leaves a name without content.
            temp_file.file.sync_all().map_err(failed)?;
        }
        temp_file.finish(&file.path, self.policy.replace).map_err(failed)?;
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
        {
            let mut content = lock(&file.content);
            content.temp_file = None;
            content.basis = None;
        }
        let mut state = lock(&self.state);
        if state.open.remove(&file.number).is_none() {
            return;
        }
        match &outcome {
            Ok((hash, written)) => {
                let counts = &mut state.counts;
                *(if *written { &mut counts.written } else { &mut counts.unchanged }) += 1;
                state.hash = Some(*hash);
            }
            Err(reason) => {
                state.given_up.insert(file.number);
                state.counts.failed += 1;
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
        let mut state = lock(&self.state);
        state.counts.failed += 1;
        state.note_failure(path, reason);
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
                Ok(true) => lock(&self.state).counts.written += 1,
                Ok(false) => lock(&self.state).counts.unchanged += 1,
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

    /// How many files had which fate, the failures in words, the content that came, and the hash of the only file.
    pub fn summary(&self) -> (FileCounts, Vec<String>, Bytes, Option<blake3::Hash>) {
        let state = lock(&self.state);
        (state.counts, state.failures.clone(), state.content, state.hash)
    }

    /// The content that came so far, and the files that are whole.
    pub fn so_far(&self) -> (Bytes, u64) {
        let state = lock(&self.state);
        (state.content, state.counts.written + state.counts.unchanged)
    }
}

impl State {
    fn note_failure(&mut self, path: &str, reason: &str) {
        if self.failures.len() < MAX_FAILURES {
            let named = reason.contains(path);
            self.failures.push(if named { reason.to_owned() } else { format!("{path}: {reason}") });
        }
    }
}

impl IncomingFile {
    fn new(number: u32, entry: Entry, size: Option<u64>) -> IncomingFile {
        let sparse = matches!(entry.kind, EntryKind::File { sparse: true, .. });
        IncomingFile {
            number,
            path: entry.path,
            mode: entry.mode,
            modified: entry.modified,
            attributes: entry.attributes,
            size,
            sparse,
            compare_only: false,
            writing: Mutex::default(),
            content: Mutex::new(Content {
                progress: FileProgress::new(size),
                temp_file: None,
                basis: None,
                writing: 0,
                unflushed: 0,
                finishing: false,
            }),
        }
    }

    /// Whether all came and was written, for the first thread that asks: the end and the last piece may be seen by two.
    /// A file of one piece that was wanted whole needs no end.
    fn becomes_complete(&self, content: &mut Content) -> bool {
        let complete = !content.finishing && self.is_complete(content);
        content.finishing |= complete;
        complete
    }

    fn is_complete(&self, content: &Content) -> bool {
        let needs_no_end = self.size.is_some_and(|size| hash_tree::pieces(size) == 1)
            && content.basis.is_none()
            && !self.compare_only;
        content.writing == 0
            && (content.progress.is_complete()
                || needs_no_end && content.progress.pieces_came() > 0)
    }
}

fn set_status(there: &File, file: &IncomingFile) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    there.set_permissions(std::fs::Permissions::from_mode(file.mode & 0o777))?;
    let since = std::time::Duration::new(file.modified.0.max(0) as u64, file.modified.1);
    there.set_modified(std::time::SystemTime::UNIX_EPOCH + since)
}

/// Whether what is there is a file of that length and time.
fn is_same(stat: &rustix::fs::Stat, size: u64, modified: (i64, u32)) -> bool {
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

fn has_length(file: &File, size: Option<u64>) -> bool {
    size.is_some_and(|size| file.metadata().is_ok_and(|metadata| metadata.len() == size))
}

/// Copies all of `from`: by reference where the file system can.
fn copy(from: &File, to: &File) -> io::Result<()> {
    if rustix::fs::ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
    io::Seek::rewind(&mut from)?;
    io::copy(&mut from, &mut to).map(|_| ())
}

/// Makes a range of a file read as zeros.
fn clear(file: &File, from: u64, length: u64, zeros: &[u8]) -> io::Result<()> {
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    if length == 0 || rustix::fs::fallocate(file, punch, from, length).is_ok() {
        return Ok(());
    }
    let (mut at, end) = (from, from + length);
    while at < end {
        let n = (end - at).min(zeros.len() as u64);
        file.write_all_at(&zeros[..n as usize], at)?;
        at += n;
    }
    Ok(())
}

/// `path` with its first name replaced.
fn renamed(path: &RelativePath, name: &[u8]) -> Result<RelativePath, TransferError> {
    let bytes = path.as_bytes();
    let rest = bytes.iter().position(|byte| *byte == b'/').map_or(&b""[..], |at| &bytes[at..]);
    Ok(RelativePath::new([name, rest].concat())?)
}

fn exists_or(path: &RelativePath, error: io::Error) -> TransferError {
    match error.kind() {
        io::ErrorKind::AlreadyExists => TransferError::Exists(path.to_string().into()),
        io::ErrorKind::WouldBlock => TransferError::InUse(path.to_string().into()),
        _ => target::failed(path, error),
    }
}
