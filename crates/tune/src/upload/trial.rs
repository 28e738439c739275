use sweetspot_units::{Duration, Rate};

use super::meter::Epoch;

/// More than the pace, in the first trial, and at most: a step that paid is followed at once by one
/// so many times as large, so that a path that got faster is full again in a few steps.
const FIRST_STEP: f64 = 0.05;
const LARGEST_STEP: f64 = 0.25;
const GROWTH: f64 = 4.0;

/// Epochs of a trial: one until it shows, and one to measure.
const EPOCHS: u32 = 2;

/// Share of a step that the rate must follow with.
const PAID: f64 = 0.5;

/// Epochs between two trials, doubled each time that one does not pay.
const FIRST_REST: u32 = 5;
const LONGEST_REST: u32 = 20;

/// Tries whether the path takes more: nothing else tells an upload that is held below capacity.
/// What a trial left in the buffer is paid back by sending as much less for as long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    stage: Stage,
    rest: u32,
    step: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Resting { left: u32 },
    Trying { from: Rate, left: u32 },
    PayingBack { from: Rate, left: u32 },
}

/// What a trial wants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// Nothing.
    Wait,
    /// This pace, for a while.
    Set(Rate),
    /// More brought nothing: this pace.
    Back(Rate),
    /// The path takes more: this pace, which is yet more.
    Paid(Rate),
}

impl Default for Trial {
    fn default() -> Trial {
        Trial { stage: Stage::Resting { left: FIRST_REST }, rest: FIRST_REST, step: FIRST_STEP }
    }
}

impl Trial {
    /// Whether the pace is not the one that is held.
    pub fn is_on(&self) -> bool {
        !matches!(self.stage, Stage::Resting { .. })
    }

    /// Judges an epoch that was spent at `pace` with this `queue`, which may be up to `aim`.
    pub fn handle_epoch(
        &mut self,
        epoch: &Epoch,
        queue: Duration,
        aim: Duration,
        pace: Rate,
    ) -> Outcome {
        match &mut self.stage {
            Stage::Resting { left }
            | Stage::Trying { left, .. }
            | Stage::PayingBack { left, .. }
                if *left > 1 =>
            {
                *left -= 1;
                Outcome::Wait
            }
            Stage::Resting { .. } => Outcome::Set(self.try_from(pace)),
            Stage::Trying { from, .. } => {
                let from = *from;
                let followed = epoch.rate() >= from.scaled(1.0 + self.step * PAID);
                if followed && queue <= aim {
                    self.step = (self.step * GROWTH).min(LARGEST_STEP);
                    self.rest = FIRST_REST;
                    return Outcome::Paid(self.try_from(pace));
                }
                self.stage = Stage::PayingBack { from, left: EPOCHS };
                Outcome::Set(from.scaled(1.0 - self.step))
            }
            Stage::PayingBack { from, .. } => {
                let from = *from;
                // A large step that was too large leaves room for a small one.
                let small = self.step == FIRST_STEP;
                self.rest = if small { (self.rest * 2).min(LONGEST_REST) } else { FIRST_REST };
                self.step = FIRST_STEP;
                self.stage = Stage::Resting { left: self.rest };
                Outcome::Back(from)
            }
        }
    }

    fn try_from(&mut self, pace: Rate) -> Rate {
        self.stage = Stage::Trying { from: pace, left: EPOCHS };
        pace.scaled(1.0 + self.step)
    }
}
