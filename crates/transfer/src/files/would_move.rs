//! The list of a dry run, at both ends.

use sweetspot_control::{DryRunCounts, DryRunEntry, DryRunKind, TransferSummary};
use sweetspot_protocol::RelativePath;
use sweetspot_units::Bytes;

use crate::files::bounded_lines::BoundedLines;

/// The changes that a transfer would make. Both ends name an entry as the sender lists it.
#[derive(Default)]
pub(crate) struct DryRunList {
    lines: BoundedLines,
    entries: Vec<DryRunEntry>,
    counts: DryRunCounts,
}

impl DryRunList {
    /// Something would be written; `bytes`: the content of a file, if its length is known.
    pub fn write(&mut self, path: &RelativePath, kind: DryRunKind, bytes: Option<u64>) {
        self.counts.note_write(kind, bytes.unwrap_or(0));
        self.add(path, kind, bytes);
    }

    /// Something would only get another mode or owner, or other extended attributes.
    pub fn update(&mut self, path: &RelativePath) {
        self.counts.update += 1;
        self.add(path, DryRunKind::Attributes, None);
    }

    fn add(&mut self, path: &RelativePath, kind: DryRunKind, bytes: Option<u64>) {
        let path = path.to_string();
        let line = match (kind, bytes) {
            (DryRunKind::File, None) => path.clone(),
            (DryRunKind::File, Some(bytes)) => format!("{path} ({})", Bytes::new(bytes)),
            (kind, _) => format!("{path} ({})", word(kind)),
        };
        if self.lines.add(line) {
            self.entries.push(DryRunEntry { path, kind, bytes });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Moves the list into the summary of a dry run that would delete `summary.deleted`.
    pub fn conclude(self, summary: &mut TransferSummary) {
        let delete = summary.deleted.len() as u64;
        summary.dry_run = true;
        summary.would = Some(DryRunCounts { delete, ..self.counts });
        summary.would_change = self.entries;
        summary.would_move = self.lines.into_lines();
    }
}

fn word(kind: DryRunKind) -> &'static str {
    match kind {
        DryRunKind::File => "file",
        DryRunKind::Directory => "directory",
        DryRunKind::Symlink => "symbolic link",
        DryRunKind::HardLink => "hard link",
        DryRunKind::Attributes => "attributes only",
    }
}
