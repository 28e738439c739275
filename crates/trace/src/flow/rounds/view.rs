use sweetspot_units::{Duration, Time};

use crate::flow::losses::Repair;

/// The sender's state at one time.
#[derive(Debug, Clone, Copy)]
pub struct View {
    pub now: Time,
    pub next: u64,
    pub una: u64,
    /// The advertised window's right edge; `None` if the window is unknown.
    pub edge: Option<u64>,
    pub mss: u64,
    /// The largest window ever advertised.
    pub largest: u64,
    /// Nothing more will be sent.
    pub finished: bool,
    pub last_repair: Option<Repair>,
    /// The min RTT so far.
    pub base: Option<Duration>,
    /// Number of retransmissions since the peer last made progress.
    pub repeats: u64,
    /// The capture is at the sender, so it shows every retransmission.
    pub at_sender: bool,
}

impl View {
    pub fn room(&self) -> u64 {
        self.edge.map_or(u64::MAX, |edge| edge.saturating_sub(self.next))
    }

    pub fn window(&self) -> u64 {
        self.edge.map_or(u64::MAX, |edge| edge.saturating_sub(self.una))
    }

    /// Whether a window is small because data is unread.
    pub fn is_small(&self, window: u64) -> bool {
        has_shrunk(window, self.largest)
    }

    /// The window space for which a sender waits: a full segment, or half of the largest window if that is smaller (RFC 9293
    /// §3.8.6.2.1).
    pub fn step(&self) -> u64 {
        self.mss.min(self.largest / 2)
    }
}

/// New data, and the sender's activity before it.
#[derive(Debug, Clone, Copy)]
pub struct Sending {
    pub bytes: u64,
    /// If the sender had paused, whether an acknowledgement ended the pause.
    pub pause: Option<bool>,
    /// The time since data was last sent.
    pub gap: Duration,
    /// The peer has sent data since this side did, so this is an answer.
    pub answers: bool,
    /// A small message from the receiver ended the pause, after acknowledgements had not.
    pub granted: bool,
    /// The message did so while unacknowledged data was in flight.
    pub midway: bool,
    /// The capture misses data before this.
    pub missing: bool,
    /// This is a full segment.
    pub full: bool,
}

/// Whether a window is at most half of `largest`, the largest one advertised before. If half of it is less than a segment, the
/// edge moves in steps of half a window (RFC 9293 §3.8.6.2.2).
pub fn has_shrunk(window: u64, largest: u64) -> bool {
    window <= largest / 2
}
