//! Does the path take more?

use sweetspot_units::{Duration, Rate, Time};

use super::params::{
    FIRST_STEP, LATE, LEAST_DELIVERED, LEAST_UNIT, NEXT_STEP, PAID, SURE, TRIAL_PAUSE,
};
use super::target_queue;
use crate::model::DeliveryRate;

/// Tries whether the path takes more: nothing else tells an upload that is held below capacity.
/// What a trial left in the buffer is paid back at once, by sending as much less for as long;
/// meanwhile comes back what it did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trial {
    stage: Stage,
    /// Whether a trial has paid, and the next one goes on from there.
    grows: bool,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Resting {
        until: Time,
    },
    /// More is sent than the pace it is tried `from`.
    Trying {
        from: Rate,
        began: Time,
        until: Time,
    },
    /// As much less is sent for as long; what is delivered from `since` to `end` the trial sent.
    PayingBack {
        from: Rate,
        since: Time,
        end: Time,
        until: Time,
    },
}

/// What a look at an upload that is held has shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// Its pace.
    pub pace: Rate,
    /// The round trip without a queue, and the queue.
    pub base: Duration,
    pub queue: Duration,
    /// Whether a trial may begin.
    pub may_begin: bool,
}

impl Look {
    fn no_queue(&self) -> bool {
        self.queue <= target_queue(self.base)
    }
}

/// What a trial wants.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    /// Nothing.
    Wait,
    /// This pace.
    Set(Rate),
    /// The path takes more: this pace, which is yet more.
    Paid(Rate),
    /// The path took more, but not so much: it is full at this rate.
    Full(Rate),
}

impl Trial {
    /// None yet, at this pace on a path of round trip `base`.
    pub(super) fn new(now: Time, pace: Rate, base: Duration) -> Trial {
        let until = now + unit(pace, base) * TRIAL_PAUSE;
        Trial { stage: Stage::Resting { until }, grows: false }
    }

    /// Whether the pace is not the one that is held.
    pub(super) fn is_on(&self) -> bool {
        self.poll_timeout().is_some()
    }

    /// When it is to be looked at again, where that is soon.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        match self.stage {
            Stage::Trying { until, .. } | Stage::PayingBack { until, .. } => Some(until),
            Stage::Resting { .. } => None,
        }
    }

    /// A look at the upload.
    pub(super) fn handle_look(
        &mut self,
        now: Time,
        look: &Look,
        delivered: &DeliveryRate,
    ) -> Outcome {
        let (Stage::Resting { until }
        | Stage::Trying { until, .. }
        | Stage::PayingBack { until, .. }) = self.stage;
        if now < until {
            return Outcome::Wait;
        }
        let base = look.base;
        match self.stage {
            Stage::Resting { .. } if !look.may_begin => Outcome::Wait,
            Stage::Resting { .. } => Outcome::Set(self.begin(now, look.pace, look)),
            Stage::Trying { from, began, .. } => {
                // A look that came late let it last longer.
                let lasted = now.since(began);
                let seen = delivered.between(began, now).filter(|_| lasted >= base * 2);
                if let Some(rate) = seen.filter(|_| look.no_queue()) {
                    // So late that most of what it did has come back: all but a round trip of it.
                    let share = 1.0 - base.as_secs_f64() / lasted.as_secs_f64();
                    let rose = (rate.as_f64() - from.as_f64()) / share;
                    return self.judge(now, from, Rate::from_f64(from.as_f64() + rose), look);
                }
                let (since, end) = (began + base, now + base + LATE);
                let until = now + lasted.max(base);
                self.stage = Stage::PayingBack { from, since, end, until };
                Outcome::Set(from.scaled(1.0 - self.step()))
            }
            Stage::PayingBack { from, since, end, .. } => {
                // Where nobody looked in time it told nothing.
                let rate = delivered.between(since, end).unwrap_or(from);
                self.judge(now, from, rate, look)
            }
        }
    }

    /// The path delivered `rate` when more was sent than `from`.
    fn judge(&mut self, now: Time, from: Rate, rate: Rate, look: &Look) -> Outcome {
        let step = self.step();
        if look.no_queue() && rate >= from.scaled(1.0 + step * PAID) {
            self.grows = true;
            return Outcome::Paid(self.begin(now, from.scaled(1.0 + step), look));
        }
        // Behind the trial's own queue the path delivered all it can.
        let held = if look.no_queue() { from } else { from.max(rate.scaled(SURE)) };
        let grew = self.grows && rate > from;
        *self = Trial::new(now, look.pace, look.base);
        if grew { Outcome::Full(rate) } else { Outcome::Set(held) }
    }

    /// Begins a trial; its pace.
    fn begin(&mut self, now: Time, from: Rate, look: &Look) -> Rate {
        let until = now + unit(look.pace, look.base);
        self.stage = Stage::Trying { from, began: now, until };
        from.scaled(1.0 + self.step())
    }

    fn step(&self) -> f64 {
        if self.grows { NEXT_STEP } else { FIRST_STEP }
    }
}

/// The time that a trial at this pace takes on a path of round trip `base`.
fn unit(pace: Rate, base: Duration) -> Duration {
    base.max(LEAST_UNIT).max(LEAST_DELIVERED / pace)
}
