//! The part of a transfer at its receiver that changes, behind one lock.

use std::collections::HashMap;
use std::sync::Arc;

use sweetspot_protocol::record::FileResult;
use sweetspot_protocol::{FileCounts, RelativePath};
use sweetspot_units::Bytes;

use super::file::IncomingFile;
use super::kept::{ComparedFiles, LateDirectory, MadeDirectories, NumberSet};
use super::name_list::NameList;
use super::prune::Pruning;
use crate::files::bounded_lines::BoundedLines;
use crate::files::failures::Failures;
use crate::files::would_move::DryRunList;
use crate::limits::MAX_OPEN_BYTES;
use crate::{Result, TransferError};

/// How something came to be there as the sender has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Written,
    /// Its content was there, and it got other attributes.
    Updated,
    Unchanged,
}

impl Fate {
    /// The fate of a link that is `new`, or was there.
    pub fn of_link(new: bool) -> Fate {
        if new { Fate::Written } else { Fate::Unchanged }
    }

    /// The fate of an entry with the same content, depending on whether its attributes were updated.
    pub fn of_attributes(updated: bool) -> Fate {
        if updated { Fate::Updated } else { Fate::Unchanged }
    }
}

#[derive(Default)]
pub(super) struct IncomingState {
    /// How many entries were decided on.
    pub planned: u32,
    /// Content that came before its entry was decided on.
    pub early: HashMap<u32, Vec<u8>>,
    pub open: HashMap<u32, Arc<IncomingFile>>,
    /// The memory that they take, bytes.
    pub open_bytes: usize,
    /// Files that failed while pieces of them were on their way.
    pub given_up: NumberSet,
    /// Entries that later ones may refer to, and which of them are there as they were announced.
    pub names: NameList,
    pub whole: NumberSet,
    /// Files that a dry run would write, which later entries may refer to, too.
    pub would_arrive: NumberSet,
    pub made: MadeDirectories,
    pub compared: ComparedFiles,
    pub directories: Vec<LateDirectory>,
    /// Entries that are further names of others.
    pub hard_links: Vec<(u32, u32)>,
    pub results: Vec<FileResult>,
    /// How many were written or unchanged.
    pub counts: FileCounts,
    pub failures: Failures,
    pub content: Bytes,
    /// The hash of the last file, and the number of files with one.
    pub hash: Option<blake3::Hash>,
    pub small_files: SmallFiles,
    /// Whether extended attributes came that this end did not ask for.
    pub attributes_left_out: bool,
    pub dry_run: DryRunList,
    /// Pipes, sockets and devices that the sender has.
    pub skipped: BoundedLines,
    /// Files and directories with set-user-ID, set-group-ID or sticky bits, which this end does not set.
    pub special_bits: u64,
    pub pruning: Pruning,
}

impl IncomingState {
    /// Counts something that is there as the sender has it.
    pub fn count(&mut self, fate: Fate) {
        let counts = &mut self.counts;
        *match fate {
            Fate::Written => &mut counts.written,
            Fate::Updated => &mut counts.updated,
            Fate::Unchanged => &mut counts.unchanged,
        } += 1;
    }

    pub fn may_open(&self, file: &IncomingFile) -> Result<()> {
        if self.open_bytes + file.weight() <= MAX_OPEN_BYTES {
            return Ok(());
        }
        let path = file.path.to_string().into();
        let reason = "together, the names and attributes of unfinished files exceed the limit; send fewer at once";
        Err(TransferError::TooMuch { path, reason })
    }

    /// Adds a file that awaits content.
    pub fn open(&mut self, file: IncomingFile) -> Arc<IncomingFile> {
        self.open_bytes += file.weight();
        let file = Arc::new(file);
        self.open.insert(file.number, Arc::clone(&file));
        file
    }
}

/// Files that were written and may not be on the disk.
#[derive(Default)]
pub(super) enum SmallFiles {
    #[default]
    None,
    One(RelativePath),
    Several,
}

impl SmallFiles {
    pub fn add(&mut self, path: &RelativePath) {
        *self = match self {
            SmallFiles::None => SmallFiles::One(path.clone()),
            _ => SmallFiles::Several,
        };
    }

    /// Counts one file as several unless it came `alone`.
    pub fn filter(self, alone: bool) -> SmallFiles {
        match self {
            SmallFiles::One(_) if !alone => SmallFiles::Several,
            other => other,
        }
    }
}
