use std::net::SocketAddr;

use sweetspot_protocol::series::SeriesRecord;
use sweetspot_sizing::Sizing;
use sweetspot_units::Bytes;

/// Watches one transfer, which prints nothing itself.
///
/// The transfer's own threads make the calls, one at a time. A slow call delays the controller.
pub trait TransferObserver: Send {
    /// Both ends agreed, and content follows.
    fn opened(&mut self, opened: &Agreed) {
        let _ = opened;
    }
    /// The next line of the time series is there.
    fn line(&mut self, line: &SeriesRecord) {
        let _ = line;
    }
    /// There is a remark for users who asked for detail.
    fn note(&mut self, note: &str) {
        let _ = note;
    }
}

/// What both ends agreed on before the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed {
    /// The peer's address.
    pub peer: SocketAddr,
    /// The file's name at the receiver.
    pub name: String,
    /// The file's length.
    pub size: Bytes,
    /// The sizing that is used.
    pub sizing: Sizing,
}

/// An observer that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullObserver;

impl TransferObserver for NullObserver {}

/// An observer that keeps the time series.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SeriesRecorder {
    /// The lines so far.
    pub lines: Vec<SeriesRecord>,
}

impl TransferObserver for SeriesRecorder {
    fn line(&mut self, line: &SeriesRecord) {
        self.lines.push(line.clone());
    }
}
