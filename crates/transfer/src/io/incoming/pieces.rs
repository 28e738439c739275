//! Pieces: hashed, written, and counted until a file is whole.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use rustix::fs::FallocateFlags;
use sweetspot_linux::file;
use sweetspot_protocol::ProtocolError;
use sweetspot_protocol::frame::PieceHeader;
use sweetspot_protocol::hash_tree::{self, PIECE_BYTES, piece_hash, piece_length};
use sweetspot_protocol::record::FileEnd;
use sweetspot_units::Bytes;

use super::super::channel::lock;
use super::super::target::{self, TempFile};
use super::file::{Content, IncomingFile};
use super::{Destination, IncomingFiles, exists_or};
use crate::TransferError;

/// What is written is sent to the disk in portions, so that little is left for the final fsync.
const WRITEBACK_BYTES: u64 = 8 << 20;

/// Disk space is reserved in portions: some file systems take their time (tmpfs clears memory), and the sender would
/// wait meanwhile.
const RESERVE_BYTES: u64 = 16 << 20;

/// A piece of work for the threads that hash and write.
pub(crate) enum Job {
    Piece(PieceHeader, Vec<u8>),
    /// Several small ones.
    Pieces(Vec<(PieceHeader, Vec<u8>)>),
    Holes(u32, u32, u32),
}

impl IncomingFiles {
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
        let only = file.is_one_piece();
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
        if file.size.is_none() {
            match self.take_room(&file.path, bytes.len() as u64, 0) {
                Ok(room) => lock(&file.content).room += room,
                Err(error) => {
                    self.give_up(&file, &error.to_string());
                    return Ok(());
                }
            }
        }
        let temp_file = {
            let mut content = lock(&file.content);
            content.progress.handle_piece(header.piece, bytes.len() as u64, header.hash)?;
            content.writing += 1;
            let end = (u64::from(header.piece) + 1) * PIECE_BYTES;
            match self.temp_file(&file, &mut content).and_then(|temp_file| {
                self.reserve(&file, &mut content, temp_file.as_deref(), end)?;
                Ok(temp_file)
            }) {
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
            && content.there().is_none()
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
        let written = target.write_small(&file.path, bytes, &file.status, self.policy.replace);
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                self.give_up(file, &exists_or(&file.path, error).to_string());
                return Ok(());
            }
        };
        {
            let mut state = lock(&self.state);
            state.content += Bytes::new(length);
            state.small_files = true;
        }
        self.close(file, Ok((blake3::Hash::from_bytes(header.hash), written)));
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
        let only = file.is_one_piece();
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
            let resumed = content.there().is_some();
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
    pub(super) fn temp_file(
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
        let keep = file.is_large() && file.size.is_some();
        let temp_file = target.temp_file(&file.path, keep).map_err(failed)?;
        temp_file.file.set_len(0).map_err(failed)?;
        if let Some(basis) = &content.basis {
            copy(basis, &temp_file.file).map_err(failed)?;
        }
        let temp_file = Arc::new(temp_file);
        content.temp_file = Some(Arc::clone(&temp_file));
        Ok(Some(temp_file))
    }

    /// Reserves disk space up to `end` and somewhat beyond, for a file of several pieces.
    fn reserve(
        &self,
        file: &IncomingFile,
        content: &mut Content,
        temp_file: Option<&TempFile>,
        end: u64,
    ) -> Result<(), TransferError> {
        let (Some(size), Some(temp_file)) = (file.size.filter(|_| !file.sparse), temp_file) else {
            return Ok(());
        };
        let end = end.min(size);
        while file.is_large() && content.reserved < end {
            let portion = RESERVE_BYTES.min(size - content.reserved);
            temp_file
                .reserve(Bytes::new(content.reserved), Bytes::new(portion))
                .map_err(|error| target::failed(&file.path, error))?;
            content.reserved += portion;
            self.release_promised(content, portion);
        }
        Ok(())
    }
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
