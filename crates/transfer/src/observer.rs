use std::net::SocketAddr;

use sweetspot_sizing::Sizing;
use sweetspot_units::Bytes;

use sweetspot_protocol::series::SeriesRecord;

/// Watches one transfer. The transfer emits, and never prints.
///
/// Calls come from the transfer's own threads, one at a time; what takes long delays steering.
pub trait TransferObserver: Send {
    /// Both ends agreed; content follows.
    fn opened(&mut self, opened: &Agreed) {
        let _ = opened;
    }
    /// The next line of the time series.
    fn line(&mut self, line: &SeriesRecord) {
        let _ = line;
    }
    /// Something worth telling whoever asked for detail.
    fn note(&mut self, note: &str) {
        let _ = note;
    }
}

/// What both ends agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed {
    /// The other end.
    pub peer: SocketAddr,
    /// The file's name at the receiver.
    pub name: String,
    /// Its length.
    pub size: Bytes,
    /// The sizing that rules.
    pub sizing: Sizing,
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullObserver;

impl TransferObserver for NullObserver {}

/// Keeps the time series.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SeriesRecorder {
    /// Its lines so far.
    pub lines: Vec<SeriesRecord>,
}

impl TransferObserver for SeriesRecorder {
    fn line(&mut self, line: &SeriesRecord) {
        self.lines.push(line.clone());
    }
}
