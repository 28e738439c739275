//! Tests whether the path carries a higher rate.

use sweetspot_units::{Duration, Rate, Time};

use super::queue::{STEP, target_queue};
use crate::CONTROL_INTERVAL;
use crate::model::{BURST, DeliveryRate, PACE_SHARE};

/// RTTs between two trials. With the trial itself and its repayment, a trial comes every eight RTTs, as with BBR
/// (draft-ietf-ccwg-bbr, ProbeBW).
const TRIAL_PAUSE: u64 = 6;

/// Tests whether the path carries more. An upload paced below capacity has no other sign of free capacity. The upload then
/// drains the trial's queue by sending less, by the same amount and for the same time. The result arrives meanwhile.
#[derive(Debug, Clone, Copy)]
pub(super) struct PaceTrial {
    stage: TrialStage,
    /// Whether a trial succeeded, so that the next one starts from its rate.
    grows: bool,
}

#[derive(Debug, Clone, Copy)]
enum TrialStage {
    Waiting {
        until: Time,
    },
    /// Sending above the pacing rate `from`.
    Trying {
        from: Rate,
        began: Time,
        until: Time,
    },
    /// Sending below `from` by the same amount, for the same time. Data delivered from `since` to `end` were sent in the
    /// trial.
    Repaying {
        from: Rate,
        since: Time,
        end: Time,
        until: Time,
    },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct UploadState {
    pub pace: Rate,
    /// The base RTT and the queueing delay.
    pub base: Duration,
    pub queue: Duration,
    pub may_begin: bool,
}

impl UploadState {
    fn no_queue(&self) -> bool {
        self.queue <= target_queue(self.base, self.pace)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum TrialResult {
    Wait,
    Set(Rate),
    /// The path carries more; set this even higher pacing rate.
    Succeeded(Rate),
    /// The path carried more, but less than tried: it is full at this rate.
    Full(Rate),
}

impl PaceTrial {
    /// Waits for the first trial, at pacing rate `pace` on a path of base RTT `base`.
    pub(super) fn new(now: Time, pace: Rate, base: Duration) -> PaceTrial {
        let until = now + unit(pace, base) * TRIAL_PAUSE;
        PaceTrial { stage: TrialStage::Waiting { until }, grows: false }
    }

    /// Tries at once and grows fast: a path from which cross traffic has gone carries more by an unknown amount.
    pub(super) fn growing(now: Time) -> PaceTrial {
        PaceTrial { stage: TrialStage::Waiting { until: now }, grows: true }
    }

    /// The start of the current trial, if there is one.
    pub(super) fn began(&self) -> Option<Time> {
        match self.stage {
            TrialStage::Waiting { .. } => None,
            TrialStage::Trying { began, .. } | TrialStage::Repaying { since: began, .. } => {
                Some(began)
            }
        }
    }

    /// Whether a trial is in progress, so that the pacing rate differs from the held one.
    pub(super) fn is_on(&self) -> bool {
        self.poll_timeout().is_some()
    }

    /// The pacing rate between trials; `pace` is the current one.
    pub(super) fn base_pace(&self, pace: Rate) -> Rate {
        match self.stage {
            TrialStage::Waiting { .. } => pace,
            TrialStage::Trying { from, .. } | TrialStage::Repaying { from, .. } => from,
        }
    }

    /// The time of the next update, if there is one.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        match self.stage {
            TrialStage::Trying { until, .. } | TrialStage::Repaying { until, .. } => Some(until),
            TrialStage::Waiting { .. } => None,
        }
    }

    /// Updates the trial with the upload's current state.
    pub(super) fn handle_sample(
        &mut self,
        now: Time,
        state: &UploadState,
        delivered: &DeliveryRate,
    ) -> TrialResult {
        let (TrialStage::Waiting { until }
        | TrialStage::Trying { until, .. }
        | TrialStage::Repaying { until, .. }) = self.stage;
        if now < until {
            return TrialResult::Wait;
        }
        let base = state.base;
        match self.stage {
            TrialStage::Waiting { .. } if !state.may_begin => TrialResult::Wait,
            TrialStage::Waiting { .. } => TrialResult::Set(self.begin(now, state.pace, state)),
            TrialStage::Trying { from, began, .. } => {
                // The trial may have lasted longer because of a late update.
                let lasted = now.since(began);
                let seen = delivered.between(began, now).filter(|_| lasted >= base * 2);
                if let Some(rate) = seen.filter(|_| state.no_queue()) {
                    // All data of the trial have been delivered by now, except for one round trip's worth.
                    let share = 1.0 - base.as_secs_f64() / lasted.as_secs_f64();
                    let rose = (rate.as_f64() - from.as_f64()) / share;
                    return self.conclude(now, from, Rate::from_f64(from.as_f64() + rose), state);
                }
                let (since, end) = (began + base, now + base + CONTROL_INTERVAL);
                let until = now + lasted.max(base);
                self.stage = TrialStage::Repaying { from, since, end, until };
                TrialResult::Set(from.scaled(1.0 - self.step()))
            }
            TrialStage::Repaying { from, since, end, .. } => {
                // If no update came in time, the trial has no result.
                let rate = delivered.between(since, end).unwrap_or(from);
                self.conclude(now, from, rate, state)
            }
        }
    }

    /// Ends a trial: the path delivered `rate` while the sender tried a rate above `from`.
    fn conclude(&mut self, now: Time, from: Rate, rate: Rate, state: &UploadState) -> TrialResult {
        let step = self.step();
        let tried = from.scaled(1.0 + step);
        // The delivered rate is nearer to the tried rate than to the old one.
        if state.no_queue() && rate + rate >= from + tried {
            self.grows = true;
            return TrialResult::Succeeded(self.begin(now, tried, state));
        }
        // With the trial's own queue, the path delivered at its full rate.
        let held = if state.no_queue() { from } else { from.max(rate.scaled(PACE_SHARE)) };
        let grew = self.grows && rate > from;
        *self = PaceTrial::new(now, state.pace, state.base);
        if grew { TrialResult::Full(rate) } else { TrialResult::Set(held) }
    }

    fn begin(&mut self, now: Time, from: Rate, state: &UploadState) -> Rate {
        let until = now + unit(state.pace, state.base);
        self.stage = TrialStage::Trying { from, began: now, until };
        from.scaled(1.0 + self.step())
    }

    fn step(&self) -> f64 {
        if self.grows { STEP * 2.0 } else { STEP }
    }
}

/// The duration of a trial at this pacing rate on a path of base RTT `base`.
fn unit(pace: Rate, base: Duration) -> Duration {
    base.max(CONTROL_INTERVAL).max(BURST / pace)
}
