//! Tests whether a shorter queue costs rate.

use sweetspot_units::{Duration, Rate, Time};

use super::held::{Held, KEEPS_EPOCHS};
use super::limits::{PROBING_GAIN, target_queue};
use super::state::State;
use super::{MIN_OBSERVATIONS, SETTLING_EPOCHS, Sobas, repair_epochs};
use crate::Reason;
use crate::model::{CHANGE, Epoch, RESOLUTION};

/// A window held at R x (T + queue), with a shrinking queue.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trial {
    began: Time,
    /// Payload rate before the trial.
    rate: Rate,
    queue: Duration,
    /// The shortest queue so far that cost no rate.
    paid: Option<Duration>,
    settling: u32,
    /// Epochs at the current queue that cost no rate, and those that did.
    judged: u32,
    failed: u32,
    /// All epochs at the current queue, and the sum of their rates: data late in one epoch arrive in another.
    epochs: u32,
    rates: Rate,
    /// Whether packets were lost before the limit was reached.
    overflowed: bool,
}

impl Trial {
    /// A trial on a path with delivery rate `rate` and standing queue `queue`. It begins with a queue shorter by a quarter,
    /// as BBR drains its own probe. If it began with half, goodput relative to the kernel's would fall from 0.980 to 0.973 at
    /// the fifth percentile (population `drawn`, seed 5151).
    pub(super) fn new(now: Time, rate: Rate, queue: Duration) -> Trial {
        let queue = queue.scaled(2.0 - PROBING_GAIN);
        Trial { began: now, rate, queue, settling: SETTLING_EPOCHS, ..Trial::default() }
    }

    pub(super) fn began(&self) -> Time {
        self.began
    }

    /// The mean rate of all epochs at the current queue.
    fn mean_rate(&self) -> Rate {
        self.rates.scaled(1.0 / f64::from(self.epochs.max(1)))
    }

    /// Records that packets were lost before the limit took effect.
    fn handle_overflow(&mut self) {
        (self.overflowed, self.settling) = (true, SETTLING_EPOCHS + repair_epochs());
    }

    /// Handles losses in an epoch with a rate that does not show whether the limit was in effect. If it never was, the
    /// losses are an overflow.
    fn handle_early_loss(&mut self) {
        let was_in_force = self.judged > 0 || self.failed > 0 || self.paid.is_some();
        if !was_in_force && !self.overflowed {
            self.handle_overflow();
        }
    }

    /// The hold at the shortest queue so far that cost no rate. If the buffer overflowed before the limit took effect, the
    /// path was full at this rate: then the hold at the target queue for base RTT `base`.
    pub(super) fn known(&self, base: Duration) -> Option<Held> {
        let queue = self.paid.or(self.overflowed.then(|| target_queue(base)))?;
        Some(Held::after_trial(self.rate, queue, self.began))
    }
}

impl Sobas {
    pub(super) fn apply_trial(&mut self, now: Time) {
        let (State::Trial(trial), Some(base)) = (&self.state, self.min_rtt.get()) else { return };
        let window = self.limits.window_for(trial.rate, base, trial.queue);
        self.limits.limit(now, window);
    }

    pub(super) fn check_trial(&mut self, now: Time, epoch: &Epoch, base: Duration) {
        let State::Trial(trial) = &mut self.state else { return };
        if epoch.losses > 0 && (epoch.stalled || trial.settling > 0) {
            trial.handle_early_loss();
        }
        if trial.settling == 0 {
            trial.epochs += 1;
            trial.rates = trial.rates + epoch.rate;
        }
        if epoch.stalled {
            return;
        }
        if trial.settling > 0 {
            trial.settling -= 1;
            return;
        }
        // A full path carries no more under a smaller window.
        if trial.epochs >= KEEPS_EPOCHS && trial.rate < trial.mean_rate().scaled(1.0 - CHANGE) {
            return self.open(now, Reason::PathFaster);
        }
        let Some(window) = self.limits.window() else { return };
        // More data in flight were sent before the limit: the receiver does not take back an advertised window.
        let is_in_force = !self.limits.exceeds(window, epoch.rate * epoch.rtt);
        let binds = self.limits.binds(window, epoch.rate * epoch.highest_rtt) && is_in_force;
        let overflows_again = epoch.losses > 0 && trial.overflowed;
        if !(binds || overflows_again) {
            // The limit did not cause the lower rate, nor a first loss: the window was about to overflow the buffer.
            if epoch.losses > 0 {
                trial.handle_overflow();
            }
            if !is_in_force {
                // The limit was not in force in the earlier epochs either.
                (trial.judged, trial.failed) = (0, 0);
            }
            return;
        }
        let fell = epoch.rate < trial.rate.scaled(1.0 - RESOLUTION);
        if epoch.losses > 0 || fell {
            trial.failed += 1;
            if trial.failed < MIN_OBSERVATIONS && epoch.losses == 0 {
                return;
            }
            let (rate, began) = (trial.rate, trial.began);
            return match trial.paid.filter(|_| epoch.losses == 0) {
                Some(queue) => self.settle(now, rate, queue, began),
                None => self.open(now, Reason::TrialFailed),
            };
        }
        trial.judged += 1;
        if trial.judged < KEEPS_EPOCHS {
            return;
        }
        (trial.judged, trial.failed, trial.settling) = (0, 0, SETTLING_EPOCHS);
        (trial.epochs, trial.rates) = (0, Rate::ZERO);
        trial.paid = Some(trial.queue);
        trial.queue = trial.queue / 2;
        let min = target_queue(base);
        if trial.queue > min {
            return self.apply_trial(now);
        }
        let (rate, began) = (trial.rate, trial.began);
        let queue = trial.paid.unwrap_or(min).max(min);
        self.settle(now, rate, queue, began);
    }

    /// Holds the shortest queue that cost no rate.
    fn settle(&mut self, now: Time, rate: Rate, queue: Duration, began: Time) {
        let held = Held::after_trial(rate, queue, began);
        self.transition_to(now, State::Held(held), Reason::TrialSucceeded);
        self.apply_hold(now);
    }
}
