use sweetspot_units::{Bytes, Rate};

use super::average::Average;
use super::epoch::Epoch;
use super::manner::Manner;

/// Epochs after a change of window before its effect is measured.
const SETTLING: u32 = 2;

/// Epochs over which a rate is averaged before and during a trial.
const AVERAGED: u32 = 4;

/// Epochs between two trials, doubled each time that one does not pay.
const FIRST_REST: u32 = 8;
const LONGEST_REST: u32 = 128;

/// Tries whether a larger window pays.
///
/// A standing queue takes nothing from unresponsive cross traffic, but from window-limited
/// transfers it takes rate (section V-B): there the Maximum Feasible Throughput lies at the
/// largest window that overflows nothing. Whether the path is of that kind shows in how the rate
/// answers a little more window. A transfer that has the path to itself has nothing to win.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Explorer {
    manner: &'static Manner,
    stage: Stage,
    rest: u32,
    /// Growth of the window in the next trial.
    step: f64,
    /// What was received in this stage.
    average: Average,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    /// Measuring the rate without a trial, for so many epochs at least.
    Resting { left: u32 },
    /// A larger window is in force.
    Trying { from: Bytes, before: Rate, settling: u32 },
}

/// What the explorer wants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    /// Nothing.
    Wait,
    /// Try this window.
    Try(Bytes),
    /// The trial paid: its window stays.
    Paid,
    /// The trial did not pay: back to this window.
    Back(Bytes),
}

impl Explorer {
    pub(super) fn new(manner: &'static Manner) -> Explorer {
        Explorer {
            manner,
            stage: Stage::Resting { left: FIRST_REST },
            rest: FIRST_REST,
            step: manner.trial_step,
            average: Average::default(),
        }
    }

    /// Something else changed the window: what was measured no longer counts.
    pub(super) fn restart(&mut self) {
        self.enter(Stage::Resting { left: self.rest });
    }

    /// A larger window is likely to pay: a bolder trial, soon.
    pub(super) fn expect_more(&mut self) {
        self.rest = FIRST_REST;
        self.step = self.manner.unknown_step;
        self.enter(Stage::Resting { left: AVERAGED });
    }

    /// The window overflowed: no more trials for long.
    pub(super) fn give_up(&mut self) {
        self.rest = LONGEST_REST;
        self.restart();
    }

    /// Whether a trial is on.
    pub(super) fn is_trying(&self) -> bool {
        matches!(self.stage, Stage::Trying { .. })
    }

    /// Judges an epoch that was spent under `window` with the window as the limit.
    pub(super) fn handle_epoch(&mut self, epoch: &Epoch, window: Bytes) -> Verdict {
        match &mut self.stage {
            Stage::Trying { settling, .. } if *settling > 0 => {
                *settling -= 1;
                return Verdict::Wait;
            }
            Stage::Resting { left } => *left = left.saturating_sub(1),
            Stage::Trying { .. } => {}
        }
        self.average.add(epoch);
        let Some(rate) = self.average.rate(AVERAGED) else { return Verdict::Wait };
        match self.stage {
            // Only the latest epochs are to be compared with the trial.
            Stage::Resting { left } if left > 0 => {
                self.enter(self.stage);
                Verdict::Wait
            }
            Stage::Resting { .. } => {
                self.enter(Stage::Trying { from: window, before: rate, settling: SETTLING });
                Verdict::Try(window.scaled(self.step))
            }
            Stage::Trying { from, before, .. } => self.judge(window, from, before, rate),
        }
    }

    fn judge(&mut self, window: Bytes, from: Bytes, before: Rate, rate: Rate) -> Verdict {
        let grown = window.as_f64() / from.as_f64() - 1.0;
        let followed = rate.as_f64() / before.as_f64() - 1.0;
        if followed > self.manner.trial_paid * grown {
            self.rest = FIRST_REST;
            self.step = (self.step * self.step).min(self.manner.known_step);
            self.enter(Stage::Resting { left: AVERAGED });
            Verdict::Paid
        } else {
            self.rest = (self.rest * 2).min(LONGEST_REST);
            self.step = self.manner.trial_step;
            self.enter(Stage::Resting { left: self.rest });
            Verdict::Back(from)
        }
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.average = Average::default();
    }
}
