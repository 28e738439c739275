//! Parameters that one transfer leaves to the next on the same path (RFC 9959).

use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::limits::TransferLimits;
use crate::SavedWindow;

/// Share of the longest queue that a remembered path's buffer certainly holds: cross traffic may have had a part of that queue
/// (`a_remembered_path_starts_from_1_5_times_its_longest_queue`).
const QUEUE_MARGIN: f64 = 0.75;

/// The smallest buffer considered, in BDPs. During startup and in the largest step up the window exceeds the BDP by this share.
/// With this much buffer a remembered window opens within a few round trips
/// (`the_first_train_limits_startup_to_1_1_bdp`).
pub(super) const MIN_ROOM: f64 = 0.1;

/// A path on which a transfer held a window to its end, so the window is known to cost no rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) capacity: Rate,
    pub(super) queue: Duration,
    /// The path's RTT without a queue.
    pub(super) base: Duration,
    /// The longest queue observed on the path.
    pub(super) longest_queue: Duration,
    /// The bytes left unused after an overflow.
    pub(super) unused: Bytes,
    /// When the transfer ended.
    pub(super) at: Time,
}

impl Memory {
    /// The initial window for the next transfer, and its RTT without a queue.
    pub(super) fn saved(&self, limits: &TransferLimits) -> SavedWindow {
        let window = limits.window_for(self.capacity, self.base, self.queue);
        let window = window.min(opened(Bytes::ZERO, self.room()));
        SavedWindow { window: limits.within_bounds(window), minimum_rtt: self.base }
    }

    /// Includes the longest queue and the unused bytes of the transfer `before`.
    pub(super) fn with(self, before: Option<Memory>) -> Memory {
        before.map_or(self, |before| Memory {
            longest_queue: self.longest_queue.max(before.longest_queue),
            unused: self.unused.max(before.unused),
            ..self
        })
    }

    /// A lower bound of the path's buffer.
    pub(super) fn room(&self) -> Bytes {
        (self.capacity * self.longest_queue).scaled(QUEUE_MARGIN)
    }

    /// Whether the window can be opened within a few round trips.
    pub(super) fn has_room(&self) -> bool {
        self.longest_queue >= self.base.scaled(MIN_ROOM)
    }

    /// Whether opening the window step by step leaves less unused than an overflow did.
    pub(super) fn pays(&self) -> bool {
        self.unused_opening() < self.unused
    }

    /// The bytes that the window leaves unused until it is open, beyond slow start's doubling up to twice the room: for n steps
    /// of the room r up to n x r, r x (n - 1)(n - 2) / 2.
    fn unused_opening(&self) -> Bytes {
        let window = self.capacity * (self.base + self.queue);
        let steps = window.as_f64() / self.room().as_f64().max(1.0);
        self.room().scaled((steps - 1.0) * (steps - 2.0).max(0.0) / 2.0)
    }
}

/// The window that lets the data in flight, `arrived` in the last RTT, grow by `room`, which then waits in the buffer. Below
/// twice the room, slow start only doubles the window.
pub(super) fn opened(arrived: Bytes, room: Bytes) -> Bytes {
    (arrived + room).max(room * 2)
}
