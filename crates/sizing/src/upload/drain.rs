//! Tests whether a queue drains at a lower rate.

use sweetspot_units::{Duration, Rate, Time};

use super::held::HeldUpload;
use super::queue::{burst, target_queue};
use super::state::PacingState;
use super::trial::PaceTrial;
use super::{MIN_UPLOAD_EPOCH, Upload};
use crate::Reason;
use crate::model::PACE_SHARE;

/// Time until a standing queue is judged, in units of [`reaction_time`] T plus the longest queue. At the pacing rate of a
/// drain, a queue L shrinks to the tolerated q in T ln(L / q) + L: with L = 4 T, less than 2 (T + L). The kernel's smoothed RTT
/// shows it later.
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
    /// Delivery rate since draining began, while there was a queue.
    since: Option<Rate>,
    longest: Duration,
}

impl Drain {
    fn new(now: Time, before: Rate, queue: Duration) -> Drain {
        Drain { began: now, before, since: None, longest: queue }
    }

    pub(super) fn began(&self) -> Time {
        self.began
    }
}

/// The shortest time in which to react to a `queue` on a path of base RTT `base` and rate C. The effect of a pacing rate
/// becomes visible after a round trip, and the next sample may come even later. At the rate C T / (T + L) a burst B leaves the
/// path idle for up to B / C x L / T, which is no more than T if T^2 is at least L x B / C.
fn reaction_time(base: Duration, queue: Duration, capacity: Rate) -> Duration {
    let burst = burst(base) / capacity;
    let bursts = Duration::from_secs_f64((queue.as_secs_f64() * burst.as_secs_f64()).sqrt());
    base.max(Upload::SAMPLE_INTERVAL).max(bursts)
}

impl Upload {
    /// The longest time between two samples.
    pub const SAMPLE_INTERVAL: Duration = Duration::from_nanos(MIN_UPLOAD_EPOCH.as_nanos() / 4);

    /// Begins to drain the queue of a path that delivers `rate`.
    pub(super) fn begin_drain(&mut self, now: Time, rate: Rate, base: Duration, reason: Reason) {
        let drain = Drain::new(now, rate, self.queue(base));
        self.transition_to(now, PacingState::Draining(drain), reason);
        self.pace(Some(rate.scaled(PACE_SHARE)));
    }

    /// Holds the upload at `pace`, and begins `trial`.
    pub(super) fn hold(
        &mut self,
        now: Time,
        pace: Rate,
        base: Duration,
        (trial, reason): (PaceTrial, Reason),
    ) {
        if let Some(background) = &mut self.background {
            background.capacity = background.capacity.max(pace);
        }
        let held = HeldUpload::new(trial);
        self.transition_to(now, PacingState::Held(held), reason);
        self.epochs.restart(now, base, &mut self.round_trip);
        self.pace(Some(pace));
    }

    /// Updates the remaining queue.
    pub(super) fn drain(&mut self, now: Time, base: Duration) {
        let queue = self.queue(base);
        let tolerated = self.background.is_some().then(|| self.tolerated());
        let PacingState::Draining(drain) = &mut self.state else { return };
        // Data already in the buffer when the drain began show in the RTT one round trip later.
        drain.longest = drain.longest.max(queue);
        let elapsed = now.since(drain.began);
        // From here on, all arrivals were sent since the drain began. The path is busy as long as there is a queue.
        let known = drain.since.unwrap_or(drain.before);
        if elapsed >= base && queue > target_queue(base, known) {
            drain.since = self.delivery_rate.since(drain.began).or(drain.since);
        }
        let capacity = drain.since.unwrap_or(drain.before);
        if elapsed >= base && queue <= target_queue(base, capacity) {
            let pace = capacity.max(drain.before).scaled(PACE_SHARE);
            let trial = PaceTrial::new(now, pace, base);
            return self.hold(now, pace, base, (trial, Reason::CapacityKnown));
        }
        let ours = (self.in_flight / capacity).saturating_sub(base);
        let reaction = reaction_time(base, ours, capacity);
        if elapsed > (reaction + drain.longest) * DRAIN_PATIENCE {
            if queue * 2 >= drain.longest {
                // Most of the queue still stands.
                return match tolerated {
                    None => self.open(now, base),
                    Some(tolerated) if queue > tolerated => self.begin_yield(now, base),
                    Some(_) => {
                        let pace = capacity.scaled(PACE_SHARE);
                        let trial = PaceTrial::new(now, pace, base);
                        self.hold(now, pace, base, (trial, Reason::CapacityKnown));
                    }
                };
            }
            // The queue shrinks, but slowly: the path delivers less than before.
            *drain = Drain::new(now, capacity, queue);
        }
        // The longer our queue, the lower the pacing rate: C T / (T + L) delivers the queue L in the time T + L, so that the
        // buffer is not empty before a new rate takes effect.
        let share = reaction.as_secs_f64() / (reaction + ours).as_secs_f64();
        self.pace(Some(capacity.scaled(share.min(PACE_SHARE))));
    }
}
