//! Paced just below what the path delivers, for as long as that is so.

use sweetspot_units::{Duration, Time};

use super::params::{BINDS, EXCESS, EXCESS_EPOCHS, SURGE};
use super::state::State;
use super::trial::{Look, Outcome, Trial};
use super::{Upload, epoch_span, target_queue};
use crate::Reason;
use crate::model::Epoch;

/// What is known of an upload that is held.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// Epochs in a row with a queue.
    excess: u32,
    /// Whether its pace, and not its window, losses or others, held it in the last epoch. Only then
    /// a trial of more would tell something.
    binds: bool,
    /// Since when a queue is there that grows fast.
    surge: Option<Time>,
    /// What more pace would bring.
    pub(super) trial: Trial,
}

impl Held {
    /// Nothing yet; before the first trial.
    pub(super) fn new(trial: Trial) -> Held {
        Held { excess: 0, binds: false, surge: None, trial }
    }
}

impl Upload {
    /// Tries more now and then, and takes a queue away at once that grows fast.
    pub(super) fn probe(&mut self, now: Time, base: Duration) {
        let queue = self.queue(base);
        let (State::Held(held), Some(pace)) = (&mut self.state, self.pacing) else { return };
        let surges = !self.starved && queue > base.scaled(SURGE).max(target_queue(base) * 2);
        held.surge = surges.then(|| held.surge.unwrap_or(now));
        if held.surge.is_some_and(|since| now.since(since) >= base)
            && let Some(rate) = self.delivery_rate.over(base)
        {
            return self.begin_drain(now, rate.min(pace), base, Reason::PathSlower);
        }
        let may_begin = held.binds && held.excess == 0 && !surges && !self.starved;
        let look = Look { pace, base, queue, may_begin };
        let was_on = held.trial.is_on();
        let outcome = held.trial.handle_look(now, &look, &self.delivery_rate);
        if was_on && !held.trial.is_on() {
            // Its traces are nobody's queue.
            held.excess = 0;
            self.epochs.restart(now, epoch_span(base), &mut self.round_trip);
        }
        match outcome {
            Outcome::Wait => {}
            Outcome::Set(pace) => self.pace(Some(pace)),
            Outcome::Paid(pace) => {
                let held = State::Held(*held);
                self.transition_to(now, held, Reason::PathFaster);
                self.pace(Some(pace));
            }
            Outcome::Full(rate) => self.begin_drain(now, rate, base, Reason::RateInelastic),
        }
    }

    /// Judges an epoch between trials.
    pub(super) fn judge_hold(&mut self, now: Time, epoch: &Epoch, base: Duration) {
        let (State::Held(held), Some(pace)) = (&mut self.state, self.pacing) else { return };
        if held.trial.is_on() {
            return;
        }
        held.binds = epoch.rate >= pace.scaled(BINDS);
        let exceeds = epoch.rtt.saturating_sub(base) > target_queue(base).scaled(EXCESS);
        held.excess = if exceeds { held.excess + 1 } else { 0 };
        if held.excess >= EXCESS_EPOCHS {
            // A short queue in two epochs: the path cannot be much slower than the pace.
            let rate = epoch.rate.clamp(pace.scaled(BINDS), pace);
            self.begin_drain(now, rate, base, Reason::PathSlower);
        }
    }
}
