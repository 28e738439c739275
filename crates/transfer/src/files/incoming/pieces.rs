//! Hashes, writes and counts pieces until a file is complete.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_channel::{Receiver, Sender};
use sweetspot_linux::file;
use sweetspot_protocol::frame::PieceHeader;
use sweetspot_protocol::hash_tree::{PIECE_BYTES, piece_hash};
use sweetspot_protocol::record::FileEnd;
use sweetspot_protocol::{PeerText, ProtocolError, RelativePath};
use sweetspot_units::Bytes;

use super::file::{Content, IncomingFile, Slot};
use super::state::Fate;
use super::{Destination, IncomingFiles, exists_or};
use crate::files::packing::Unpacker;
use crate::files::quota::{blocks_of, room_of, room_on_disk};
use crate::files::target;
use crate::files::temp_file::{Keep, TempFile};
use crate::lock::lock;
use crate::{Result, TransferError};

/// Written data is flushed to disk in portions of this size, so that the final fsync is short.
const WRITEBACK_BYTES: u64 = 8 << 20;

/// Disk space is reserved in portions of this size. Some file systems are slow to reserve, and the sender would wait
/// meanwhile.
const RESERVE_BYTES: u64 = 16 << 20;

/// The failure of a file with a piece that does not match its header.
const DAMAGED: &str = "its content was damaged in transit";

/// A job for the threads that hash and write.
pub(crate) enum Job {
    /// One piece, compressed if it has fewer bytes than its content.
    Piece(PieceHeader, Vec<u8>),
    /// Several small pieces.
    Pieces(Vec<(PieceHeader, Vec<u8>)>),
    Holes(u32, u32, u32),
}

impl IncomingFiles {
    /// Hashes and writes the pieces in `jobs` until the channel closes. Returns buffers through `spent`.
    pub fn work(&self, jobs: &Receiver<Job>, spent: &Sender<Vec<u8>>) -> Result<()> {
        let mut unpacker = Unpacker::default();
        for job in jobs {
            match job {
                Job::Piece(header, mut bytes) => {
                    self.take(&header, &bytes, &mut unpacker)?;
                    bytes.clear();
                    let _ = spent.try_send(bytes);
                }
                Job::Pieces(pieces) => {
                    for (header, bytes) in &pieces {
                        self.take(header, bytes, &mut unpacker)?;
                    }
                }
                Job::Holes(entry, first, pieces) => self.take_holes(entry, first, pieces)?,
            }
        }
        Ok(())
    }

    /// Handles a piece, compressed or not.
    fn take(&self, header: &PieceHeader, bytes: &[u8], unpacker: &mut Unpacker) -> Result<()> {
        if bytes.len() == header.length as usize {
            return self.take_piece(header, bytes);
        }
        // Nothing is decompressed for a file that is not open.
        let Some(file) = self.file(header.entry)? else { return Ok(()) };
        match unpacker.unpack(bytes, header.length) {
            Some(content) => self.take_piece(header, &content),
            None => {
                self.give_up(&file, DAMAGED);
                Ok(())
            }
        }
    }

    fn take_piece(&self, header: &PieceHeader, bytes: &[u8]) -> Result<()> {
        let Some(file) = self.file(header.entry)? else { return Ok(()) };
        let joined = file.join_early(header, bytes);
        let (header, bytes) = joined.as_ref().map_or((header, bytes), |(h, b)| (h, &b[..]));
        let only = file.is_one_piece();
        let hash = piece_hash(header.piece, only, bytes);
        let whole = || file.size.is_none() && header.piece == 0;
        if hash != header.hash && !(whole() && piece_hash(0, true, bytes) == header.hash) {
            self.give_up(&file, DAMAGED);
            return Ok(());
        }
        if matches!(self.destination, Destination::Output)
            && header.piece != lock(&file.content).progress.pieces_came()
        {
            let what = "out of order, which standard output cannot take";
            return Err(ProtocolError::Piece { piece: header.piece, what }.into());
        }
        if only && self.is_plain(&file) {
            return self.take_small(&file, header, bytes);
        }
        let temp_file = match self.expect_piece(&file, header)? {
            Some(Ok(temp_file)) => temp_file,
            Some(Err(error)) => {
                self.give_up(&file, &error);
                return Ok(());
            }
            None => return Ok(()),
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
            self.give_up(&file, &target::failed(&file.path, error));
            return Ok(());
        }
        self.note_written(&file, bytes.len() as u64, temp_file.as_deref());
        Ok(())
    }

    /// Counts a piece that is about to be written, reserves its quota, and returns its destination; `None` if the
    /// file is closed. The inner error is the reason why the file cannot be received.
    fn expect_piece(
        &self,
        file: &IncomingFile,
        header: &PieceHeader,
    ) -> Result<Option<Result<Option<Arc<TempFile>>>>> {
        let mut content = lock(&file.content);
        if content.closed {
            return Ok(None);
        }
        let (piece, length) = (header.piece, u64::from(header.length));
        if content.finishing {
            return Err(ProtocolError::Piece { piece, what: "after the end of its file" }.into());
        }
        // A piece that was received before is overwritten.
        let is_new = !content.progress.received(piece);
        content.progress.handle_piece(piece, length, header.hash)?;
        if is_new && piece < content.resumable {
            // The existing piece had other content, or was damaged.
            self.resumed.fetch_sub(length, Ordering::Relaxed);
        }
        let begin = |content: &mut Content| {
            if is_new && !file.takes_room_at_once() {
                self.take_more_room(file, content, blocks_of(length))?;
            }
            let temp_file = self.temp_file(file, content)?;
            let end = (u64::from(piece) + 1) * PIECE_BYTES;
            self.reserve(file, content, temp_file.as_deref(), end)?;
            content.writing += 1;
            Ok(temp_file)
        };
        Ok(Some(begin(&mut content)))
    }

    fn take_more_room(&self, file: &IncomingFile, content: &mut Content, room: u64) -> Result<()> {
        self.take_room(&file.path, room)?;
        content.room += room;
        Ok(())
    }

    /// Whether a file is written as a new file in a directory.
    fn is_plain(&self, file: &IncomingFile) -> bool {
        let content = lock(&file.content);
        matches!(self.destination, Destination::Directory { .. })
            && !content.exists()
            && !file.compare_only
    }

    fn take_small(
        &self,
        file: &Arc<IncomingFile>,
        header: &PieceHeader,
        bytes: &[u8],
    ) -> Result<()> {
        let Destination::Directory { target, .. } = &self.destination else { return Ok(()) };
        let length = bytes.len() as u64;
        {
            let mut content = lock(&file.content);
            if content.finishing || content.closed {
                let what = "after the end of its file";
                return Err(ProtocolError::Piece { piece: header.piece, what }.into());
            }
            content.progress.handle_piece(header.piece, length, header.hash)?;
            content.finishing = true;
        }
        let written = self.replacing(target, &file.path, || {
            target.write_small(&file.path, bytes, &file.status, self.policy.replace)
        });
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                self.give_up(file, &exists_or(&file.path, error));
                return Ok(());
            }
        };
        {
            let mut state = lock(&self.state);
            state.content += Bytes::new(length);
            state.small_files.add(&file.path);
        }
        if written && self.quota().is_some() {
            // The quota is now charged for the written data, not for the reservation.
            lock(&file.content).room = 0;
        }
        let fate = if written { Fate::Written } else { Fate::Unchanged };
        self.close(file, Ok((blake3::Hash::from_bytes(header.hash), fate)));
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

    /// Handles content sent before its entry was answered, or just after. It is kept if the file is wanted.
    pub fn take_early(&self, entry: u32, content: Vec<u8>) {
        let file = {
            let mut state = lock(&self.state);
            if entry >= state.planned {
                state.early.insert(entry, content);
                return;
            }
            state.open.get(&entry).cloned()
        };
        if let Some(file) = file {
            lock(&file.content).early = content;
        }
    }

    /// Handles the sender's report that it has sent all requested pieces of a file.
    pub fn take_end(&self, end: &FileEnd) -> Result<()> {
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

    /// Handles the sender's report that it cannot send an entry.
    pub fn handle_gone(&self, entry: u32, reason: &PeerText) -> Result<()> {
        if let Some(file) = self.file(entry)?
            && !lock(&file.content).finishing
        {
            self.give_up(&file, reason.to_string().as_str());
        }
        Ok(())
    }

    pub(super) fn file(&self, number: u32) -> Result<Option<Arc<IncomingFile>>> {
        let state = lock(&self.state);
        match state.open.get(&number) {
            Some(file) => Ok(Some(Arc::clone(file))),
            None if state.given_up.contains(number) => Ok(None),
            None => Err(ProtocolError::NoEntry(number).into()),
        }
    }

    /// The file to write to; `None` for standard output.
    pub(super) fn temp_file(
        &self,
        file: &IncomingFile,
        content: &mut Content,
    ) -> Result<Option<Arc<TempFile>>> {
        let Destination::Directory { target, .. } = &self.destination else { return Ok(None) };
        if let Some(temp_file) = &content.temp_file {
            return Ok(Some(Arc::clone(temp_file)));
        }
        if file.compare_only {
            let (what, when) = ("content", "of a file that was only to be compared");
            return Err(ProtocolError::OutOfOrder { what, when }.into());
        }
        let failed = |error| exists_or(&file.path, error);
        let keep = if file.is_large() && file.size.is_some() { self.keep() } else { Keep::Never };
        content.slot = Some(self.slot(&file.path)?);
        let temp_file = target.temp_file(&file.path, keep).map_err(failed)?;
        self.empty(&temp_file).map_err(failed)?;
        let temp_file = Arc::new(temp_file);
        content.temp_file = Some(Arc::clone(&temp_file));
        if let Some(id) = content.basis {
            let basis = target.open_same(&file.path, id).map_err(failed)?;
            let length = basis.metadata().map_err(failed)?.len().min(file.size.unwrap_or(0));
            if !file.takes_room_at_once() {
                self.take_more_room(file, content, blocks_of(length))?;
            }
            copy(&basis, &temp_file.file, length).map_err(failed)?;
        }
        Ok(Some(temp_file))
    }

    /// A place for the descriptor of an unfinished file.
    fn slot(&self, path: &RelativePath) -> Result<Slot> {
        Slot::take(&self.descriptors).ok_or_else(|| {
            let reason = "too many files are unfinished; send fewer at once";
            TransferError::TooMuch { path: path.to_string().into(), reason }
        })
    }

    /// Truncates an earlier transfer's partial file, and frees its quota.
    fn empty(&self, temp_file: &TempFile) -> io::Result<()> {
        let left = match self.quota() {
            Some(_) => room_on_disk(&temp_file.file.metadata()?) - room_of(0),
            None => 0,
        };
        temp_file.file.set_len(0)?;
        self.release_room(left);
        Ok(())
    }

    /// Reserves disk space at least up to `end`, for a file of several pieces.
    fn reserve(
        &self,
        file: &IncomingFile,
        content: &mut Content,
        temp_file: Option<&TempFile>,
        end: u64,
    ) -> Result<()> {
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

/// Copies `length` bytes of `from`, by reference if the file system supports it.
fn copy(from: &File, to: &File, length: u64) -> io::Result<()> {
    if from.metadata()?.len() == length && rustix::fs::ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
    io::Seek::rewind(&mut from)?;
    io::copy(&mut from.take(length), &mut to).map(|_| ())
}
