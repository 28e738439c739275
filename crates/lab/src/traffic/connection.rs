use std::io;

use sweetspot_linux::tcp::{Flow, options};
use sweetspot_units::{Bytes, Time};

use super::totals::SegmentCounts;

/// Bytes read or written at a time.
const IO_BYTES: Bytes = Bytes::new(1 << 20);

#[derive(Debug)]
pub(super) struct TrafficConnection {
    pub load: usize,
    pub flow: Flow,
    pub end: ConnectionRole,
}

#[derive(Debug)]
pub(super) enum ConnectionRole {
    Source(SendingState),
    /// Receives and discards, with its window clamped to this size.
    Sink(Option<Bytes>),
}

#[derive(Debug)]
pub(super) struct SendingState {
    pub source: usize,
    pub opened: Time,
    /// Total bytes to send; `None` for no end.
    pub size: Option<Bytes>,
    sent: Bytes,
    finished: bool,
    /// Counts at the start of the measurement.
    pub before: SegmentCounts,
}

impl SendingState {
    pub fn new(source: usize, opened: Time, size: Option<Bytes>) -> SendingState {
        let (sent, finished, before) = (Bytes::ZERO, false, SegmentCounts::default());
        SendingState { source, opened, size, sent, finished, before }
    }

    /// Whether all data was written and acknowledged by the other end.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Writes as much as fits into the send buffer.
    pub fn push(&mut self, flow: &Flow) -> io::Result<()> {
        while !self.finished {
            let left = self.size.map_or(IO_BYTES, |size| size.saturating_sub(self.sent));
            if left == Bytes::ZERO {
                self.finished = true;
                return flow.finish();
            }
            let written = flow.send(left.min(IO_BYTES))?;
            if written == Bytes::ZERO {
                return Ok(());
            }
            self.sent += written;
        }
        Ok(())
    }
}

/// Discards received data; true once the other end has finished.
pub(super) fn drain(flow: &Flow, window: Option<Bytes>) -> io::Result<bool> {
    while let Some(bytes) = flow.discard(IO_BYTES)? {
        if bytes == Bytes::ZERO {
            return Ok(true);
        }
        if let Some(window) = window {
            // The kernel overwrites the clamp when it learns how much memory a segment takes.
            options::set_window_clamp(flow, window)?;
        }
    }
    Ok(false)
}
