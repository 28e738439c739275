use sweetspot_units::{Duration, Time};

use super::view::View;
use crate::flow::elapsed::Elapsed;
use crate::flow::losses::Repair;

/// A round trip at the sender: from sending a byte until its acknowledgement.
#[derive(Debug, Default)]
pub struct Round {
    pub end: u64,
    pub started: Time,
    pub una: u64,
    pub flight: u64,
    /// The minimum free space in the advertised window, the window at that time, and the largest window until
    /// then.
    pub room: u64,
    pub window: u64,
    pub largest: u64,
    pub rtt: Option<Duration>,
    /// Bytes sent after pauses that an acknowledgement ended, and after pauses that the sender itself ended.
    pub prompted: u64,
    pub unprompted: u64,
    /// Bytes in bursts that began after a small message of the receiver.
    pub granted: u64,
    /// The time for which the sender paused of its own accord.
    pub paused: Duration,
    /// Whether a full segment was sent.
    pub full: bool,
    /// Whether no data were in flight when it began.
    pub fresh: bool,
    pub shut: Elapsed,
    /// The time with data in flight until the receiver's last progress, and the time since then.
    pub busy: Elapsed,
    pub unanswered: Elapsed,
}

impl Round {
    pub fn new(view: &View) -> Round {
        Round {
            end: view.next,
            started: view.now,
            una: view.una,
            flight: view.next - view.una,
            room: view.room(),
            window: view.window(),
            largest: view.largest,
            ..Round::default()
        }
    }

    /// The latest repair of a loss, if it falls into this round.
    pub fn repaired(&self, view: &View) -> Option<Repair> {
        view.last_repair.filter(|repair| repair.at >= self.started)
    }
}
