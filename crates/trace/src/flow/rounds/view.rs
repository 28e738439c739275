use sweetspot_units::{Duration, Time};

use crate::flow::losses::Repair;

/// The sender's view at one time.
#[derive(Debug, Clone, Copy)]
pub struct View {
    pub now: Time,
    pub next: u64,
    pub una: u64,
    /// The advertised window's right edge; `None` where the window cannot be known.
    pub edge: Option<u64>,
    pub mss: u64,
    /// The largest window ever advertised.
    pub largest: u64,
    /// Nothing will be sent any more.
    pub finished: bool,
    pub last_repair: Option<Repair>,
    /// The shortest round trip so far.
    pub base: Option<Duration>,
    /// How often something was sent again since the peer last moved on.
    pub repeats: u64,
    /// The capture is at the sender, so that it shows every repetition.
    pub at_sender: bool,
}

impl View {
    pub fn room(&self) -> u64 {
        self.edge.map_or(u64::MAX, |edge| edge.saturating_sub(self.next))
    }

    pub fn window(&self) -> u64 {
        self.edge.map_or(u64::MAX, |edge| edge.saturating_sub(self.una))
    }

    /// Whether a window is small because data lies unread.
    pub fn is_small(&self, window: u64) -> bool {
        has_shrunk(window, self.largest)
    }

    /// The unit that a sender waits for before it sends: a full segment, or half of the largest window if that is smaller (RFC
    /// 9293 §3.8.6.2.1).
    pub fn step(&self) -> u64 {
        self.mss.min(self.largest / 2)
    }
}

/// The sender's activity before it sent new data.
#[derive(Debug, Clone, Copy)]
pub struct Sending {
    pub bytes: u64,
    /// Whether the sender had paused, and if so whether an acknowledgement ended that.
    pub pause: Option<bool>,
    /// How long nothing had been sent.
    pub gap: Duration,
    /// The peer had sent data since this side did: it answers.
    pub answers: bool,
    /// A small message of the receiver ended the pause, after acknowledgements had not.
    pub granted: bool,
    /// It did so while data that it had not acknowledged was under way.
    pub midway: bool,
    /// The capture misses data before it.
    pub missing: bool,
    /// It is a full segment.
    pub full: bool,
}

/// Whether a window is closed, or no more than half of the largest one advertised before: its later growth shows nothing. If a
/// segment holds half of it, the edge moves by halves (RFC 9293 §3.8.6.2.2).
pub fn has_shrunk(window: u64, largest: u64) -> bool {
    window <= largest / 2
}
