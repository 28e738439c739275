//! Climbs to the capacity under BBR if the sender's own congestion control leaves part of the path unused.
//!
//! Random losses and buffers of a few packets keep Reno and CUBIC far below the capacity, and packet trains often cannot
//! measure it there. A higher pacing rate distinguishes a path with free capacity from a full one: the delivery rate increases,
//! but neither losses nor the queue do. If losses or the queue increase as well, cross traffic is yielding. It is also yielding
//! if the rate exceeds the capacity of an unshared path ([`Performance::lone_capacity`]).

use sweetspot_units::{Duration, Rate, Time};

use super::held::{Held, KEEPS_EPOCHS};
use super::limits::{PROBING_GAIN, is_used};
use super::performance::{Performance, Traffic};
use super::state::State;
use super::{SETTLING_EPOCHS, Sobas, repair_epochs};
use crate::model::{CHANGE, Epoch};
use crate::{CongestionChoice, Reason};

/// Epochs of the baseline, and the maximum for a step: the difference of two means has twice the variance of one mean. One
/// cycle of BBR's gains has the same length (draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3.4).
pub(super) fn cycle_epochs() -> u64 {
    u64::from(KEEPS_EPOCHS) * 2
}

/// A climb: the pacing rate is raised in steps.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Climb {
    /// Performance under the sender's own congestion control, plus the losses at every pacing rate that did not fill the path.
    free: Performance,
    step: Option<Step>,
}

/// A step to a higher pacing rate.
#[derive(Debug, Clone, Copy)]
struct Step {
    from: Rate,
    pace: Rate,
    /// Epochs until the step has taken effect.
    settling: u32,
    seen: Performance,
}

impl Step {
    /// A step from a rate of `from`.
    fn new(from: Rate, pace: Rate) -> Step {
        Step { from, pace, settling: SETTLING_EPOCHS, seen: Performance::default() }
    }

    /// Whether the rate has reached about `pace`; `None` until that is significant.
    fn is_followed(&self, path_is_full: bool) -> Option<bool> {
        let min = self.pace.as_f64() * (1.0 - CHANGE);
        let rates = self.seen.rates;
        let is_clear = rates.exceeds(min) || rates.falls_below(min) || path_is_full;
        (is_clear || rates.count() >= cycle_epochs()).then(|| rates.mean() > min)
    }
}

impl Climb {
    /// A probe was answered on a path of this base RTT.
    pub(super) fn handle_probe(&mut self, rtt: Duration, base: Duration) {
        match &mut self.step {
            None => self.free.handle_probe(rtt, base),
            Some(step) if step.settling == 0 => step.seen.handle_probe(rtt, base),
            Some(_) => {}
        }
    }
}

impl Sobas {
    /// Begins a climb on an open path after slow start. The wait doubles with each climb.
    pub(super) fn consider_climbing(&mut self, now: Time) {
        let State::Open(open) = &mut self.state else { return };
        if self.in_slow_start || self.is_shared {
            return;
        }
        open.epochs += 1;
        if open.epochs >= self.patience {
            self.patience *= 2;
            self.transition_to(now, State::Climb(Climb::default()), Reason::TryingMore);
        }
    }

    pub(super) fn check_climb(
        &mut self,
        now: Time,
        epoch: &Epoch,
        base: Duration,
        traffic: Traffic,
    ) {
        let State::Climb(climb) = &mut self.state else { return };
        if epoch.stalled {
            return;
        }
        let Some(step) = &mut climb.step else {
            climb.free.handle_epoch(epoch, traffic);
            if climb.free.rates.count() < cycle_epochs() {
                return;
            }
            let free = climb.free;
            if is_used(free.idle) {
                // Cross traffic or this transfer uses the whole path.
                return self.open(now, Reason::NoMore);
            }
            if self.capacity_above(free.max_lone_capacity()).is_some() {
                // By the trains the path carries more: cross traffic uses the rest.
                return self.open(now, Reason::CrossTrafficQueue);
            }
            return self.take_step(now, &free, PROBING_GAIN);
        };
        if step.settling > 0 {
            step.settling -= 1;
            // Cross traffic has not yielded yet.
            step.seen.lost.add(traffic.retransmitted, traffic.delivered);
            return;
        }
        step.seen.handle_epoch(epoch, traffic);
        // Losses become known only after these epochs. Two epochs suffice for a standard error; with a third, one late arrival
        // cannot decide.
        if step.seen.rates.count() < u64::from(repair_epochs()) {
            return;
        }
        let free = climb.free;
        // A lone transfer cannot exceed its capacity, so cross traffic has yielded.
        let is_taken = step.seen.rate() > free.max_lone_capacity();
        let is_full = is_taken || step.seen.lost.exceeds(free.lost);
        let Some(is_followed) = step.is_followed(is_full) else { return };
        let step = *step;
        let (rate, own) = (step.seen.rate(), free.rate());
        match (is_followed, is_full) {
            (true, false) => {
                climb.free.lost.extend(step.seen.lost);
                self.follow(now, &step, &free, base);
            }
            // Cross traffic yields.
            (true, true) => self.open(now, Reason::CrossTrafficQueue),
            (false, _) if step.from <= own => {
                self.is_shared = is_full;
                self.open(now, Reason::NoMore);
            }
            (false, _) => {
                let capacity = rate.max(step.from);
                // By the trains the path carries more: cross traffic uses the rest.
                if self.capacity_above(capacity).is_some() {
                    return self.open(now, Reason::CrossTrafficQueue);
                }
                self.hold_climbed(now, capacity, base);
            }
        }
    }

    /// Continues after a step that the rate followed on a path that is not full.
    fn follow(&mut self, now: Time, step: &Step, free: &Performance, base: Duration) {
        let rate = step.seen.rate();
        if self.capacity_above(step.from) == Some(step.pace) {
            // The step and the trains agree.
            self.hold_climbed(now, step.pace, base);
        } else if !is_used(step.seen.idle) {
            // At most doubled, as in slow start.
            self.take_step(now, &step.seen, 2.0);
        } else if rate < free.min_lone_capacity() {
            // Cross traffic uses the rest.
            self.open(now, Reason::CrossTrafficQueue);
        } else {
            self.hold_climbed(now, step.seen.lone_capacity(), base);
        }
    }

    /// Holds the pacing rate at the capacity that the climb found.
    fn hold_climbed(&mut self, now: Time, capacity: Rate, base: Duration) {
        let State::Climb(climb) = &self.state else { return };
        let held = Held::paced(now, capacity, climb.free.lost, base);
        self.transition_to(now, State::Held(held), Reason::CapacityKnown);
        self.apply_hold(now);
    }

    /// The capacity by packet trains, if it is significantly above `rate`.
    fn capacity_above(&self, rate: Rate) -> Option<Rate> {
        let wire = self.trains.rates();
        let is_above = wire.exceeds(rate.as_f64() / self.limits.payload());
        is_above.then(|| Rate::from_f64(wire.mean() * self.limits.payload()))
    }

    /// Raises the pacing rate above the rate `seen`, by at most `gain`. The step takes only the idle part of the path and stays
    /// below the capacity by packet trains, so that cross traffic keeps its share.
    fn take_step(&mut self, now: Time, seen: &Performance, gain: f64) {
        let from = seen.rate();
        let pace = from.scaled(gain).min(seen.lone_capacity());
        let pace = self.capacity_above(from).map_or(pace, |max| max.min(pace));
        let step = Step::new(from, pace);
        let State::Climb(climb) = &mut self.state else { return };
        climb.step = Some(step);
        self.limits.congestion(now, CongestionChoice::Bbr);
        self.limits.pace(Some(step.pace));
    }
}
