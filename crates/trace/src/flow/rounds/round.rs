use sweetspot_units::{Duration, Time};

use super::view::View;
use crate::flow::elapsed::Elapsed;
use crate::flow::losses::Repair;

/// A round: from sending a byte to its acknowledgement, as the sender sees it.
#[derive(Debug, Default)]
pub struct Round {
    pub end: u64,
    pub begun: Time,
    pub una: u64,
    pub flight: u64,
    /// The least room that was left in the advertised window, the window then, and the largest until then.
    pub room: u64,
    pub window: u64,
    pub largest: u64,
    pub rtt: Option<Duration>,
    /// Bytes sent after a pause that an acknowledgement ended, and that the sender ended by itself.
    pub prompted: u64,
    pub unprompted: u64,
    /// Bytes of bursts that began behind a small message of the receiver.
    pub granted: u64,
    /// How long the sender paused by itself.
    pub paused: Duration,
    /// Whether a full segment was sent.
    pub full: bool,
    /// Whether nothing was under way before it.
    pub fresh: bool,
    pub shut: Elapsed,
    /// Time with data under way, up to the peer's last progress and since then.
    pub busy: Elapsed,
    pub unanswered: Elapsed,
}

impl Round {
    pub fn new(view: &View) -> Round {
        Round {
            end: view.next,
            begun: view.now,
            una: view.una,
            flight: view.next - view.una,
            room: view.room(),
            window: view.window(),
            largest: view.largest,
            ..Round::default()
        }
    }

    /// The latest repair of a loss, if it was in this round.
    pub fn repaired(&self, view: &View) -> Option<Repair> {
        view.last_repair.filter(|repair| repair.at >= self.begun)
    }
}
