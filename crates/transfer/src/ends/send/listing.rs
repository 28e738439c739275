//! Lists the files to the receiver, and sends the beginnings of the first ones.

use sweetspot_control::DryRunKind;
use sweetspot_linux::clock;
use sweetspot_linux::tcp::Info;
use sweetspot_protocol::frame::MAX_RECORD_BYTES;
use sweetspot_protocol::record::{Entry, EntryKind, MAX_BATCH, Record};
use sweetspot_units::{Bytes, Duration};

use super::Sending;
use crate::files::file_reader;
use crate::files::outgoing::Unanswered;
use crate::files::source::{Listed, SourceFile, SourceList};
use crate::limits::MAX_EARLY_CONTENT;
use crate::lock::lock;
use crate::{Result, TransferError};

impl Sending<'_> {
    /// Lists all sources.
    pub(super) fn list(&self, list: &SourceList) -> Result<()> {
        let (mut entries, mut unanswered) = (Vec::new(), Vec::new());
        let (mut count, mut files, mut bytes, mut left_out) = (0u32, 0u32, 0u64, 0u32);
        let mut last = clock::now();
        list.list(|item| {
            match item {
                Listed::LeftOut(reason) => {
                    left_out = left_out.saturating_add(1);
                    self.files.left_out(reason);
                }
                Listed::Entry(entry, file) => {
                    if entry.kind == EntryKind::Special {
                        self.files.skipped(&entry.path);
                    }
                    self.files.note_special_bits(&entry);
                    count += 1;
                    let is_file = !matches!(entry.kind, EntryKind::Directory | EntryKind::Special);
                    files += u32::from(is_file);
                    bytes += file.as_ref().and_then(SourceFile::size).unwrap_or(0);
                    let kind = kind_in_dry_run(&entry.kind).filter(|_| self.options.dry_run);
                    let name = kind.map(|kind| (entry.path.clone(), kind));
                    entries.push(entry);
                    unanswered.push(Unanswered { file, is_file, name });
                }
            }
            // The first batch is small, so that the receiver does not wait until a slow disk is listed.
            let waited = clock::now().since(last) >= Duration::from_millis(5);
            if entries.len() < MAX_BATCH && !waited || entries.is_empty() {
                return Ok(());
            }
            last = clock::now();
            let first = count - entries.len() as u32;
            self.send_entries(first, &mut entries, &mut unanswered)
        })?;
        let first = count - entries.len() as u32;
        self.send_entries(first, &mut entries, &mut unanswered)?;
        self.files.listed(u64::from(files), Bytes::new(bytes));
        self.channel.send_record(&Record::Listed { entries: count, files, bytes, left_out })
    }

    /// Sends these entries; the first has the number `first`.
    fn send_entries(
        &self,
        first: u32,
        entries: &mut Vec<Entry>,
        unanswered: &mut Vec<Unanswered>,
    ) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let early = if first == 0 { self.beginnings(unanswered) } else { Vec::new() };
        self.files.send_early(early.iter().cloned());
        lock(&self.order).listed(entries.len() as u64);
        if !self.files.listing(unanswered.drain(..)) {
            return Err(TransferError::Interrupted);
        }
        // Extended attributes make entries large, so a batch holds as many entries as fit into a record.
        let mut batch = Vec::new();
        let mut size = 0;
        for entry in entries.drain(..) {
            let length = encoded_bound(&entry);
            if size + length > MAX_RECORD_BYTES as usize && !batch.is_empty() {
                self.channel.send_record(&Record::Entries(std::mem::take(&mut batch)))?;
                size = 0;
            }
            size += length;
            batch.push(entry);
        }
        let early = early.into_iter().map(|(entry, content)| Record::Early { entry, content });
        let records = [Record::Entries(batch)].into_iter().chain(early);
        let frames: Vec<Vec<u8>> = records.map(|record| record.to_frame()).collect();
        // In one write: the rest of these files must not overtake their beginnings.
        self.channel.write(&frames.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// Beginnings of the files listed first, sent before the receiver has answered: as much as the congestion window allows.
    /// The connection would otherwise be idle, so unwanted content costs no time.
    fn beginnings(&self, unanswered: &[Unanswered]) -> Vec<(u32, Vec<u8>)> {
        let unlikely = self.options.dry_run || self.options.checksum;
        let Some(info) = Info::read(self.channel.socket()).ok().filter(|_| !unlikely) else {
            return Vec::new();
        };
        let window = info.snd_mss.get() * u64::from(info.snd_cwnd.saturating_sub(info.unacked));
        let mut left = window.min(self.early_bytes.min(MAX_EARLY_CONTENT).into());
        let mut early = Vec::new();
        for (entry, Unanswered { file, .. }) in (0..).zip(unanswered) {
            if left == 0 {
                break;
            }
            if let Some(content) = file.as_ref().and_then(|file| file_reader::beginning(file, left))
            {
                left -= content.len() as u64;
                early.push((entry, content));
            }
        }
        early
    }
}

/// The kind of an entry without content that a dry run lists.
fn kind_in_dry_run(kind: &EntryKind) -> Option<DryRunKind> {
    match kind {
        EntryKind::Directory => Some(DryRunKind::Directory),
        EntryKind::Symlink { .. } => Some(DryRunKind::Symlink),
        EntryKind::HardLink { .. } => Some(DryRunKind::HardLink),
        EntryKind::File { .. } | EntryKind::Stream | EntryKind::Special => None,
    }
}

/// An upper bound on the encoded size of an entry: each number takes at most ten bytes.
fn encoded_bound(entry: &Entry) -> usize {
    const NUMBERS: usize = 80;
    let attribute = |(name, value): &(Vec<u8>, Vec<u8>)| name.len() + value.len() + 20;
    let target = match &entry.kind {
        EntryKind::Symlink { target } => target.len(),
        _ => 0,
    };
    let attributes: usize = entry.attributes.iter().map(attribute).sum();
    let owner = entry
        .owner
        .as_ref()
        .map_or(0, |owner| 20 + owner.user_name.raw().len() + owner.group_name.raw().len());
    NUMBERS + entry.path.as_bytes().len() + target + owner + attributes
}
