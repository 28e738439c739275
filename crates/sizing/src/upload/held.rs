//! Pacing just below the path's delivery rate, for as long as that rate lasts.

use sweetspot_units::{Duration, Time};

use super::Upload;
use super::queue::target_queue;
use super::state::PacingState;
use super::trial::{PaceTrial, TrialResult, UploadState};
use crate::Reason;
use crate::model::{AGREEMENT, Epoch};

/// A queue of this share of a round trip is drained at once: the path became slower, and its buffer
/// fills quickly. With half of this share, our own trials look like such a queue; with twice the
/// share, a path that became slower is not drained within 20 round trips
/// (`crates/control/tests/upload.rs`).
const SURGE_RTT_SHARE: f64 = 0.5;

/// State of an upload paced at a known rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeldUpload {
    /// Whether a queue above the tolerated one stood throughout the last epoch.
    has_queue: bool,
    /// Whether the pacing rate (not the window, losses or cross traffic) was the limit in the last
    /// epoch. Only then is a trial of a higher pacing rate meaningful.
    binds: bool,
    /// The start of a fast-growing queue.
    surge: Option<Time>,
    /// A queue of others that a less-than-best-effort upload tolerates.
    foreign: Duration,
    pub(super) trial: PaceTrial,
}

impl HeldUpload {
    /// The state before the first trial.
    pub(super) fn new(trial: PaceTrial) -> HeldUpload {
        HeldUpload { has_queue: false, binds: false, surge: None, foreign: Duration::ZERO, trial }
    }
}

impl Upload {
    /// Occasionally tries a higher pacing rate, and drains a fast-growing queue at once.
    pub(super) fn probe(&mut self, now: Time, base: Duration) {
        let (queue, tolerated) = (self.queue(base), self.tolerated());
        let (PacingState::Held(held), Some(pace)) = (&mut self.state, self.pacing) else { return };
        let surge = base.scaled(SURGE_RTT_SHARE).max(target_queue(base, pace)).max(tolerated);
        let surges = !self.starved && queue > surge;
        held.surge = surges.then(|| held.surge.unwrap_or(now));
        if held.surge.is_some_and(|since| now.since(since) >= base)
            && let Some(rate) = self.delivery_rate.over(base)
        {
            // A trial that ends lowers the rate by itself.
            let rate = rate.min(held.trial.base_pace(pace));
            return self.begin_drain(now, rate, base, Reason::PathSlower);
        }
        let may_begin = held.binds && !held.has_queue && !surges && !self.starved;
        let queue = queue.saturating_sub(held.foreign);
        let state = UploadState { pace, base, queue, may_begin };
        let was_on = held.trial.is_on();
        let outcome = held.trial.handle_sample(now, &state, &self.delivery_rate);
        if was_on && !held.trial.is_on() {
            // The trial and not cross traffic caused the remaining queue.
            held.has_queue = false;
            self.epochs.restart(now, base, &mut self.round_trip);
        }
        match outcome {
            TrialResult::Wait => {}
            TrialResult::Set(pace) => self.pace(Some(pace)),
            TrialResult::Succeeded(pace) => {
                let held = PacingState::Held(*held);
                self.transition_to(now, held, Reason::PathFaster);
                self.pace(Some(pace));
            }
            TrialResult::Full(rate) => self.begin_drain(now, rate, base, Reason::RateInelastic),
        }
    }

    /// Evaluates an epoch between trials.
    pub(super) fn check_hold(&mut self, now: Time, epoch: &Epoch, base: Duration) {
        let tolerated = self.tolerated();
        let (PacingState::Held(held), Some(pace)) = (&mut self.state, self.pacing) else { return };
        if held.trial.is_on() {
            return;
        }
        held.binds = epoch.rate >= pace.scaled(1.0 - AGREEMENT);
        // A longer queue than our own trial leaves.
        held.has_queue = epoch.rtt > base + (target_queue(base, pace) * 2).max(tolerated);
        held.foreign = epoch.rtt.saturating_sub(base).min(tolerated);
        if held.has_queue {
            // There was a short queue in one epoch, so the path cannot be much slower than the
            // pacing rate.
            let rate = epoch.rate.clamp(pace.scaled(1.0 - AGREEMENT), pace);
            self.begin_drain(now, rate, base, Reason::PathSlower);
        }
    }
}
