//! Watches a transfer: shows its progress and writes its time series.

use std::fs::File;
use std::io::{LineWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};

use sweetspot_control::series::SeriesRecord;
use sweetspot_program::print::Shown;
use sweetspot_transfer::{Agreed, FileLog, FileRecord, Progress, TransferError, TransferObserver};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::ProgressScreen;
use super::progress::TransferProgress;
use super::words::chosen;

/// The state of a transfer's path, for a verb that makes new connections itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathState {
    /// The time when the last data arrived on a connection that broke.
    pub lost: Option<Time>,
    /// Content moved over all connections.
    pub moved: Bytes,
    /// The part of it moved by the newest connection.
    newest: Bytes,
}

impl PathState {
    /// Notes the content moved by the newest connection; a lower number than before means a new
    /// connection.
    fn note(&mut self, bytes: Bytes) {
        let before = if bytes < self.newest { Bytes::ZERO } else { self.newest };
        self.moved += bytes.saturating_sub(before);
        self.newest = bytes;
    }
}

/// Watches one transfer.
pub(super) struct Watching {
    pub series: Option<Arc<Mutex<LineWriter<File>>>>,
    pub screen: ProgressScreen,
    pub verbose: bool,
    pub quiet: bool,
    pub relays_loopback: bool,
    pub rate_limit: Option<Rate>,
    pub number: u64,
    /// The name and address of a service's client.
    pub client: Option<String>,
    pub progress: Option<TransferProgress>,
    pub path: Arc<Mutex<PathState>>,
}

/// A row of the series with the transfer's number, because a server has several transfers at once.
#[derive(serde::Serialize)]
struct NumberedRow<'a> {
    transfer: u64,
    #[serde(flatten)]
    line: &'a SeriesRecord,
}

impl Watching {
    fn print(&self, line: &str) {
        match &self.client {
            Some(client) => self.screen.print(&format!("{client}: {line}")),
            None => self.screen.print(line),
        }
    }
}

/// Prints each file's name once its content has arrived.
struct FileNames {
    screen: ProgressScreen,
    client: Option<String>,
}

impl FileLog for FileNames {
    fn file(&self, record: &FileRecord<'_>) {
        // The end names failures; unchanged files need no line.
        if !matches!(record.outcome, Ok((_, true))) {
            return;
        }
        let label = self.client.as_ref().map(|client| format!("{client}: ")).unwrap_or_default();
        let size = record.size.map(|size| format!(" ({size})")).unwrap_or_default();
        self.screen.print(&format!("{label}{}{size}", record.path.shown()));
    }
}

impl TransferObserver for Watching {
    fn opened(&mut self, opened: &Agreed) {
        if self.quiet {
            return;
        }
        let Agreed { peer, name, size, sizing } = opened;
        let size = size.map(|size| size.to_string());
        let is_told = self.client.is_some();
        let is_far = !(self.relays_loopback && peer.ip().is_loopback());
        let peer = (is_far && !is_told).then(|| format!("peer {peer}"));
        let sizing = sizing.to_string();
        let sizing = chosen(&sizing).map(|sizing| format!("sizing {sizing}"));
        let limit = self.rate_limit.map(|limit| format!("limited to {limit}"));
        let facts = [size, peer, sizing, limit];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        match facts.is_empty() {
            false => self.print(&format!("{name}: {}", facts.join(", "))),
            true if self.client.is_some() => self.print(&format!("{name}: begins")),
            true => {}
        }
        self.progress = Some(TransferProgress::new(opened, self.screen.bars.as_ref()));
    }

    fn line(&mut self, line: &SeriesRecord) {
        if let Some(series) = &self.series {
            let numbered = NumberedRow { transfer: self.number, line };
            if let Ok(mut text) = serde_json::to_vec(&numbered) {
                text.push(b'\n');
                // A failure to write the series must not end the transfer.
                let _ = series.lock().unwrap_or_else(PoisonError::into_inner).write_all(&text);
            }
        }
        if let SeriesRecord::Row(row) = line {
            let mut path = self.path.lock().unwrap_or_else(PoisonError::into_inner);
            path.note(Bytes::new(row.bytes));
        }
        if let (SeriesRecord::Row(row), Some(progress)) = (line, &mut self.progress)
            && let Some(text) = progress.row(row)
        {
            self.print(&text);
        }
    }

    fn progress(&mut self, progress: &Progress) {
        if let Some(shown) = &mut self.progress {
            shown.files(progress);
        }
    }

    fn lost(&mut self, since: Time) {
        self.path.lock().unwrap_or_else(PoisonError::into_inner).lost = Some(since);
    }

    fn interrupted(&mut self, error: &TransferError, pause: Duration) {
        self.progress = None;
        if !self.quiet {
            let why = error.without_restart();
            self.screen.print(&format!("{why}; trying again in {pause}"));
        }
    }

    fn file_log(&self) -> Option<Arc<dyn FileLog>> {
        let names = || FileNames { screen: self.screen.clone(), client: self.client.clone() };
        self.verbose.then(|| Arc::new(names()) as Arc<dyn FileLog>)
    }

    fn note(&mut self, note: &str) {
        if self.verbose {
            self.print(note);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_successive_connections_are_summed() {
        let mut path = PathState::default();
        for bytes in [0, 300, 500, 500, 100, 150] {
            path.note(Bytes::new(bytes));
        }
        // 500 over the first connection and 150 over the second.
        assert_eq!(path.moved, Bytes::new(650));
    }
}
