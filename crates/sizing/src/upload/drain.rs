//! Tests whether a queue drains when less is sent.

use sweetspot_units::{Duration, Rate, Time};

use super::Upload;
use super::held::HeldUpload;
use super::queue::target_queue;
use super::state::PacingState;
use super::trial::PaceTrial;
use crate::Reason;
use crate::model::PACE_SHARE;

/// Round trips with the longest queue after which one that still stands is judged. At the pace of a
/// drain a queue L takes T ln(L / q) + L to shrink to the tolerated q on a path of round trip T: with
/// L = 4 T less than 2 (T + L). The kernel's smoothed RTT shows it later.
const DRAIN_PATIENCE: u64 = 5;

/// Draining a queue by sending less than the path delivers.
///
/// The data in flight beyond rate x base RTT is in the queue. This is known at once; RTT samples
/// show it only after the queueing delay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drain {
    began: Time,
    /// Delivery rate before draining.
    before: Rate,
    /// Delivery rate since then, while there was a queue.
    since: Option<Rate>,
    /// The longest queue seen.
    longest: Duration,
}

impl Drain {
    fn new(now: Time, before: Rate, queue: Duration) -> Drain {
        Drain { began: now, before, since: None, longest: queue }
    }

    /// When it began.
    pub(super) fn began(&self) -> Time {
        self.began
    }
}

impl Upload {
    /// Begins to drain the queue of a path that delivers `rate`.
    pub(super) fn begin_drain(&mut self, now: Time, rate: Rate, base: Duration, reason: Reason) {
        let drain = Drain::new(now, rate, self.queue(base));
        self.transition_to(now, PacingState::Draining(drain), reason);
        self.pace(Some(rate.scaled(PACE_SHARE)));
    }

    /// Updates the remaining queue.
    pub(super) fn drain(&mut self, now: Time, base: Duration) {
        let queue = self.queue(base);
        let PacingState::Draining(drain) = &mut self.state else { return };
        // The buffer's earlier contents become visible one RTT later.
        drain.longest = drain.longest.max(queue);
        let elapsed = now.since(drain.began);
        // Once the arrivals were sent since; the path has been busy as long as there is a queue.
        if elapsed >= base && queue > target_queue(base) {
            drain.since = self.delivery_rate.since(drain.began).or(drain.since);
        }
        let capacity = drain.since.unwrap_or(drain.before);
        if elapsed >= base && queue <= target_queue(base) {
            let pace = capacity.max(drain.before).scaled(PACE_SHARE);
            let held = HeldUpload::new(PaceTrial::new(now, pace, base));
            self.transition_to(now, PacingState::Held(held), Reason::CapacityKnown);
            self.epochs.restart(now, base, &mut self.round_trip);
            return self.pace(Some(pace));
        }
        if elapsed > (base + drain.longest) * DRAIN_PATIENCE {
            if queue * 2 >= drain.longest {
                // Most of it still stands.
                return self.open(now, base);
            }
            // It shrinks but slowly: the path takes less than it did.
            *drain = Drain::new(now, capacity, queue);
        }
        // The longer our queue, the lower the pace; it does not empty the buffer within a round trip.
        let share =
            (base.as_secs_f64() / (self.in_flight / capacity).as_secs_f64()).min(PACE_SHARE);
        self.pace(Some(capacity.scaled(share)));
    }
}
