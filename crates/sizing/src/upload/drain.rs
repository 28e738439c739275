//! Does the queue go when less is sent?

use sweetspot_units::{Duration, Rate, Time};

use super::held::Held;
use super::open::Open;
use super::params::{
    DRAIN_HORIZON, DRAIN_PACE, DRAIN_QUEUES, DRAIN_ROUND_TRIPS, HELD_PACE, LEAST_QUEUE, OURS,
};
use super::state::State;
use super::trial::Trial;
use super::{Upload, epoch_span, target_queue};
use crate::Reason;

/// A queue that is taken away by sending less than the path delivers.
///
/// What is in flight beyond rate x base round trip stands in the queue: that tells at once what a
/// round trip's samples tell only after the queue has been waited through.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drain {
    began: Time,
    /// What the path delivered before, ...
    before: Rate,
    /// ... and since, while a queue stood.
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
        self.pace(Some(rate.scaled(HELD_PACE)));
    }

    /// Looks at what is left of the queue.
    pub(super) fn drain(&mut self, now: Time, base: Duration) {
        let queue = self.queue(base);
        let State::Draining(drain) = &mut self.state else { return };
        // What was in the buffer before is seen a round trip later.
        drain.longest = drain.longest.max(queue);
        let elapsed = now.since(drain.began);
        // Once what arrives was sent since; for as long as a queue is seen the path has been busy.
        if elapsed >= base && queue > LEAST_QUEUE {
            drain.since = self.delivery_rate.since(drain.began).or(drain.since);
        }
        let capacity = drain.since.unwrap_or(drain.before);
        if elapsed >= base && queue <= target_queue(base) {
            let pace = capacity.max(drain.before).scaled(HELD_PACE);
            let held = Held::new(Trial::new(now, pace, base));
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
        self.pace(Some(capacity.scaled(share.clamp(DRAIN_PACE, HELD_PACE))));
    }
}
