//! A file that is being received.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sweetspot_protocol::frame::PieceHeader;
use sweetspot_protocol::hash_tree::{self, PIECE_BYTES, piece_length};
use sweetspot_protocol::record::{Entry, EntryKind};
use sweetspot_protocol::{FileProgress, RelativePath};

use crate::files::target::status::FileStatus;
use crate::files::temp_file::TempFile;
use crate::limits::{MAX_UNFINISHED_FILES, attribute_bytes};
use crate::lock::lock;

pub(super) struct IncomingFile {
    pub number: u32,
    pub path: RelativePath,
    pub status: FileStatus,
    /// `None` for a stream.
    pub size: Option<u64>,
    pub sparse: bool,
    /// The existing file must not be replaced, only compared.
    pub compare_only: bool,
    /// Held while a piece is written. The kernel also writes one piece at a time, and waiting threads would spin there.
    pub writing: Mutex<()>,
    pub content: Mutex<Content>,
}

#[derive(Default)]
pub(super) struct Content {
    pub progress: FileProgress,
    /// The beginning of the first piece, sent early, until the rest arrives.
    pub early: Vec<u8>,
    pub temp_file: Option<Arc<TempFile>>,
    /// The existing file that supplies pieces which the sender need not send. It is opened only when needed, because many files
    /// may be in progress.
    pub basis: Option<FileId>,
    /// Number of leading pieces that an interrupted transfer may have left.
    pub resumable: u32,
    /// The place of the file's descriptor in the transfer's budget.
    pub slot: Option<Slot>,
    pub writing: u32,
    pub unflushed: u64,
    /// Quota reserved for the file, including an interrupted transfer's partial file, bytes.
    pub room: u64,
    /// Disk space that the file will need and that is not yet reserved, bytes.
    pub promised: u64,
    /// Disk space is reserved for this many bytes from the beginning.
    pub reserved: u64,
    /// The file's runs of holes, as counted in the transfer's total.
    pub hole_runs: usize,
    /// A thread has found the file complete, and is renaming it.
    pub finishing: bool,
    /// The file is complete or failed: nothing more happens to it.
    pub closed: bool,
}

/// A file's identity: device and inode.
pub(super) type FileId = (u64, u64);

/// A place for a descriptor, freed when it is dropped.
pub(super) struct Slot(Arc<AtomicUsize>);

impl Slot {
    /// Takes a slot, unless all are in use.
    pub fn take(in_use: &Arc<AtomicUsize>) -> Option<Slot> {
        let slot = Slot(Arc::clone(in_use));
        (in_use.fetch_add(1, Ordering::AcqRel) < MAX_UNFINISHED_FILES).then_some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Content {
    /// Whether part of the file exists: an interrupted transfer's partial file, or the file itself.
    pub fn exists(&self) -> bool {
        self.temp_file.is_some() || self.basis.is_some()
    }

    /// Closes the file's descriptors.
    pub fn close(&mut self) {
        self.temp_file = None;
        self.slot = None;
        self.early = Vec::new();
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
                // A stream has no modification time, so its file keeps the time of its arrival.
                modified: (entry.kind != EntryKind::Stream).then_some(entry.modified),
                owner: entry.owner.map(|owner| (owner.user, owner.group)),
                attributes: entry.attributes,
            },
            size,
            sparse,
            compare_only: false,
            writing: Mutex::default(),
            content: Mutex::new(Content {
                progress: FileProgress::new(size),
                early: Vec::new(),
                temp_file: None,
                basis: None,
                resumable: 0,
                slot: None,
                writing: 0,
                unflushed: 0,
                room: 0,
                promised: 0,
                reserved: 0,
                hole_runs: 0,
                finishing: false,
                closed: false,
            }),
        }
    }

    /// Joins `rest`, the rest of the first piece, to the beginning that was sent early. `None` if they do not make up the
    /// piece.
    pub fn join_early(&self, header: &PieceHeader, rest: &[u8]) -> Option<(PieceHeader, Vec<u8>)> {
        let length = self.size.filter(|_| header.piece == 0).map(|size| piece_length(size, 0))?;
        let mut content = lock(&self.content);
        let lacks = content.early.len() as u64 + rest.len() as u64 == length;
        if content.early.is_empty() || !lacks {
            return None;
        }
        let mut whole = std::mem::take(&mut content.early);
        whole.extend_from_slice(rest);
        Some((PieceHeader { length: whole.len() as u32, ..*header }, whole))
    }

    /// The memory that the file occupies in addition to this structure, bytes.
    pub fn weight(&self) -> usize {
        self.path.as_bytes().len() + attribute_bytes(&self.status.attributes)
    }

    /// Whether the quota for the whole file is reserved at once. Otherwise each piece reserves its own, because most of a
    /// sparse file may be holes. A file of one piece is written in one step, without separate reservations.
    pub fn takes_room_at_once(&self) -> bool {
        self.size.is_some() && (!self.sparse || self.is_one_piece())
    }

    pub fn is_one_piece(&self) -> bool {
        self.size.is_some_and(|size| hash_tree::pieces(size) == 1)
    }

    /// Whether the file has, or may have, more than one piece.
    pub fn is_large(&self) -> bool {
        self.size.is_none_or(|size| size > PIECE_BYTES)
    }

    /// Whether everything was received and written. True only for the first thread that asks, because the end and the last
    /// piece may be handled by different threads. A file of one piece that was requested whole needs no end record.
    pub fn becomes_complete(&self, content: &mut Content) -> bool {
        let complete = !content.finishing && !content.closed && self.is_complete(content);
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
