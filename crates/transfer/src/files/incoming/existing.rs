//! Content that exists before its file is received: the file itself, or the partial file of an interrupted transfer.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sweetspot_protocol::hash_tree::{self, PIECE_BYTES, piece_hash, piece_length};
use sweetspot_protocol::record::{MAX_HASHES, Record};

use super::file::{FileId, IncomingFile, Slot};
use super::{Answers, IncomingFiles, exists_or};
use crate::files::quota::STAT_BLOCK_BYTES;
use crate::files::source::next_data;
use crate::files::target::{self, TargetDirectory};
use crate::limits::{FREE_COMPARED_PIECES, HOLES_PER_PIECE};
use crate::lock::lock;
use crate::{Result, TransferError};

pub(super) struct CurrentContent {
    pub source: File,
    /// Number of leading pieces to compare.
    pub pieces: u32,
    pub id: FileId,
    /// Whether an interrupted transfer left it; otherwise it is the file itself.
    pub is_partial: bool,
}

/// A file that gets its hashes sent after the answer.
pub(super) struct Compared {
    pub file: Arc<IncomingFile>,
    pub current: CurrentContent,
}

impl IncomingFiles {
    /// The existing content to compare with the sender's. `None` if this transfer has already compared it, so that a peer
    /// cannot make this end read the same content repeatedly.
    pub(super) fn basis(
        &self,
        target: &TargetDirectory,
        file: &IncomingFile,
    ) -> Result<Option<CurrentContent>> {
        let failed = |error| target::failed(&file.path, error);
        let source = target.open_file(&file.path).map_err(failed)?;
        let metadata = source.metadata().map_err(failed)?;
        let id = (metadata.dev(), metadata.ino());
        if metadata.len() > PIECE_BYTES && !lock(&self.state).compared.insert(id) {
            return Ok(None);
        }
        let pieces = compared(&metadata, file.size.unwrap_or(0));
        Ok(Some(CurrentContent { source, pieces, id, is_partial: false }))
    }

    /// The partial file of an interrupted transfer, to resume from.
    pub(super) fn resume(
        &self,
        target: &TargetDirectory,
        file: &mut IncomingFile,
    ) -> Result<Option<CurrentContent>> {
        let failed = |error| exists_or(&file.path, error);
        let size = file.size.unwrap_or(0);
        if hash_tree::pieces(size) <= 1 || !target.has_temp_file(&file.path) {
            return Ok(None);
        }
        // Without a free descriptor, the file starts from the beginning.
        let Some(slot) = Slot::take(&self.descriptors) else { return Ok(None) };
        let temp_file = Arc::new(target.temp_file(&file.path, self.keep()).map_err(failed)?);
        let source = temp_file.file.try_clone().map_err(failed)?;
        let metadata = source.metadata().map_err(failed)?;
        let content = file.content.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        (content.temp_file, content.slot) = (Some(temp_file), Some(slot));
        let (pieces, id) = (compared(&metadata, size), (metadata.dev(), metadata.ino()));
        Ok(Some(CurrentContent { source, pieces, id, is_partial: true }))
    }

    pub(super) fn send_hashes(
        &self,
        file: &IncomingFile,
        current: &CurrentContent,
        answers: &dyn Answers,
    ) -> Result<()> {
        let size = file.size.unwrap_or(0);
        let only = file.is_one_piece();
        let mut buffer = vec![0; PIECE_BYTES as usize];
        let (mut first, mut data) = (0, 0);
        while first < current.pieces {
            let next = current.pieces.min(first + MAX_HASHES as u32);
            let mut hashes = Vec::with_capacity((next - first) as usize);
            for piece in first..next {
                if self.is_over() {
                    return Err(TransferError::Interrupted);
                }
                let (from, length) = (u64::from(piece) * PIECE_BYTES, piece_length(size, piece));
                let bytes = &mut buffer[..length as usize];
                if data <= from {
                    data = next_data(&current.source, from, u64::MAX);
                }
                let is_hole = data >= from + length && !only;
                if is_hole {
                    bytes.fill(0);
                } else if current.source.read_exact_at(bytes, from).is_err() {
                    // An unreadable piece counts as different.
                    hashes.push([0; 32]);
                    continue;
                }
                let hash = piece_hash(piece, only, bytes);
                if current.is_partial {
                    lock(&file.content).resumable = piece + 1;
                    self.resumed.fetch_add(length, Ordering::Relaxed);
                }
                match is_hole {
                    true => lock(&file.content).progress.had_hole(piece),
                    false => lock(&file.content).progress.had(piece, &[hash]),
                }
                hashes.push(hash);
            }
            answers.send_record(&Record::Hashes { entry: file.number, first, hashes })?;
            first = next;
        }
        Ok(())
    }
}

/// The file with hashes to send, if it has any.
pub(super) fn followed(
    current: Option<CurrentContent>,
    file: Arc<IncomingFile>,
) -> Option<Compared> {
    current.filter(|current| current.pieces > 0).map(|current| Compared { file, current })
}

/// Number of whole pieces of a file of `size` bytes to compare with the existing file. Comparing holes takes time but no disk
/// space, so their number is limited in proportion to the content.
fn compared(current: &Metadata, size: u64) -> u32 {
    let length = current.len();
    let pieces = hash_tree::pieces(size.min(length));
    let whole = |pieces: u64| pieces * PIECE_BYTES <= length || length >= size;
    let covered = if whole(pieces) { pieces } else { pieces - 1 };
    let content = hash_tree::pieces(current.blocks() * STAT_BLOCK_BYTES);
    let max = FREE_COMPARED_PIECES + content.saturating_mul(HOLES_PER_PIECE);
    u32::try_from(covered.min(max)).unwrap_or(u32::MAX)
}
