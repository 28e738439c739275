//! Tests whether a queue drains when less is sent.

use sweetspot_units::{Duration, Rate, Time};

use super::held::Held;
use super::open::Open;
use super::params::{
    DRAIN_HORIZON, DRAIN_PACE, DRAIN_QUEUES, DRAIN_ROUND_TRIPS, MIN_UPLOAD_QUEUE, OURS,
    UPLOAD_PACE_SHARE,
};
use super::state::State;
use super::trial::PaceTrial;
use super::{Upload, epoch_span, target_queue};
use crate::Reason;

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
}

impl Upload {
    /// Begins to drain the queue of a path that delivers `rate`.
    pub(super) fn begin_drain(&mut self, now: Time, rate: Rate, base: Duration, reason: Reason) {
        let drain = Drain::new(now, rate, self.queue(base));
        self.transition_to(now, State::Draining(drain), reason);
        self.pace(Some(rate.scaled(UPLOAD_PACE_SHARE)));
    }

    /// Updates the remaining queue.
    pub(super) fn drain(&mut self, now: Time, base: Duration) {
        let queue = self.queue(base);
        let State::Draining(drain) = &mut self.state else { return };
        // What was in the buffer before is seen a round trip later.
        drain.longest = drain.longest.max(queue);
        let elapsed = now.since(drain.began);
        // Once what arrives was sent since; for as long as a queue is seen the path has been busy.
        if elapsed >= base && queue > MIN_UPLOAD_QUEUE {
            drain.since = self.delivery_rate.since(drain.began).or(drain.since);
        }
        let capacity = drain.since.unwrap_or(drain.before);
        if elapsed >= base && queue <= target_queue(base) {
            let pace = capacity.max(drain.before).scaled(UPLOAD_PACE_SHARE);
            let held = Held::new(PaceTrial::new(now, pace, base));
            self.transition_to(now, State::Held(held), Reason::CapacityKnown);
            self.epochs.restart(now, epoch_span(base), &mut self.round_trip);
            return self.pace(Some(pace));
        }
        if elapsed > (base * DRAIN_ROUND_TRIPS).max(drain.longest * DRAIN_QUEUES) {
            if queue >= drain.longest.scaled(OURS) {
                let held = self.delivery_rate.over(base).unwrap_or(Rate::ZERO);
                let open = Open::new(now + self.open_for, held);
                self.transition_to(now, State::Open(open), Reason::OthersQueue);
                return self.pace(None);
            }
            // It shrinks but slowly: the path takes less than it did.
            *drain = Drain::new(now, capacity, queue);
        }
        let left = (self.in_flight / capacity).saturating_sub(base);
        let share = 1.0 - left.as_secs_f64() / base.max(DRAIN_HORIZON).as_secs_f64();
        self.pace(Some(capacity.scaled(share.clamp(DRAIN_PACE, UPLOAD_PACE_SHARE))));
    }
}
