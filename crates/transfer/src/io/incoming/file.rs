//! One file on its way in.

use std::fs::File;
use std::sync::{Arc, Mutex};

use sweetspot_protocol::hash_tree::{self, PIECE_BYTES};
use sweetspot_protocol::record::{Entry, EntryKind};
use sweetspot_protocol::{FileProgress, RelativePath};

use super::super::target::{FileStatus, TempFile};

/// One file on its way in.
pub(super) struct IncomingFile {
    pub number: u32,
    pub path: RelativePath,
    pub status: FileStatus,
    /// `None` for a stream.
    pub size: Option<u64>,
    pub sparse: bool,
    /// What is there may not be replaced: only whether it is the same is asked.
    pub compare_only: bool,
    /// Held while a piece is written: the kernel writes one at a time, too, and who waits there spins.
    pub writing: Mutex<()>,
    pub content: Mutex<Content>,
}

pub(super) struct Content {
    pub progress: FileProgress,
    pub temp_file: Option<Arc<TempFile>>,
    /// What is there, from which pieces are taken that the sender need not send.
    pub basis: Option<File>,
    /// Pieces that are being written.
    pub writing: u32,
    pub unflushed: u64,
    /// Room taken of a quota.
    pub room: u64,
    /// Disk space that it will need and that is not reserved yet.
    pub promised: u64,
    /// Disk space is reserved for its first bytes, so many.
    pub reserved: u64,
    /// A thread has found it whole, and gives it its name.
    pub finishing: bool,
}

impl Content {
    /// What is there of the file: what an interrupted transfer left, or the file itself.
    pub fn there(&self) -> Option<&File> {
        self.temp_file.as_ref().map(|temp_file| &temp_file.file).or(self.basis.as_ref())
    }
}

impl IncomingFile {
    pub fn new(number: u32, entry: Entry, size: Option<u64>) -> IncomingFile {
        let sparse = matches!(entry.kind, EntryKind::File { sparse: true, .. });
        IncomingFile {
            number,
            path: entry.path,
            status: FileStatus {
                mode: entry.mode,
                modified: entry.modified,
                attributes: entry.attributes,
            },
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
                room: 0,
                promised: 0,
                reserved: 0,
                finishing: false,
            }),
        }
    }

    /// Whether it is all of one piece.
    pub fn is_one_piece(&self) -> bool {
        self.size.is_some_and(|size| hash_tree::pieces(size) == 1)
    }

    /// Whether it has more than one piece, or may have.
    pub fn is_large(&self) -> bool {
        self.size.is_none_or(|size| size > PIECE_BYTES)
    }

    /// Whether all came and was written, for the first thread that asks: the end and the last piece may be seen by two.
    /// A file of one piece that was wanted whole needs no end.
    pub fn becomes_complete(&self, content: &mut Content) -> bool {
        let complete = !content.finishing && self.is_complete(content);
        content.finishing |= complete;
        complete
    }

    fn is_complete(&self, content: &Content) -> bool {
        let needs_no_end = self.is_one_piece() && content.basis.is_none() && !self.compare_only;
        content.writing == 0
            && (content.progress.is_complete()
                || needs_no_end && content.progress.pieces_came() > 0)
    }
}
