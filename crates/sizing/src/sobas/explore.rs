use sweetspot_units::{Bytes, Duration, Rate};

use super::epoch::Epoch;

/// Share of the window's growth that the rate must follow with for a longer queue to have paid.
/// On a path that we fill alone it is nil; where cross traffic yields to our queue it begins at
/// that traffic's share of the path and falls as the queue grows (eqs 6 and 7).
const PAID: f64 = 0.13;

/// The same at the early checks, which only keep the first climb short where nothing yields: so
/// little has grown until then that others' fluctuations hide the rest.
const PAID_EARLY: f64 = 0.05;

/// Growth of the window until the first early check, between these, and between two checks.
const FIRST_CHECK: f64 = 1.08;
const NEXT_EARLY_CHECK: f64 = 1.04;
const CHECK: f64 = 1.25;

/// Epochs over which a rate is averaged before a climb and when it is judged.
const AVERAGED: u32 = 8;

/// Epochs between two climbs, doubled each time that one does not pay.
const FIRST_REST: u32 = 8;
const LONGEST_REST: u32 = 128;

/// The longest queue that is climbed to, in base round trips. At a BDP of buffer a path is
/// over-buffered for one transfer (section IV) and others' rates are halved (eq 6).
const LONGEST_QUEUE: u64 = 1;

/// Looks for the longest queue that pays.
///
/// A standing queue takes nothing from unresponsive cross traffic, but from window-limited
/// transfers it takes rate (section V-B): there the Maximum Feasible Throughput lies at the
/// largest window that overflows nothing. Whether the path is of that kind shows in how the rate
/// answers more window. Where the buffer ends shows in nothing but a loss, so that the climb is
/// slow where one may come. A transfer that has the path to itself has nothing to win.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Explorer {
    stage: Stage,
    rest: u32,
    /// What was received lately, over how long, in how many epochs.
    bytes: Bytes,
    time: Duration,
    epochs: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    /// Measuring the rate at a window that stays, for so many epochs at least.
    Resting { left: u32 },
    /// The window grows from where it last paid up to the next check, at which the rate must have
    /// followed with this share of the growth.
    Climbing { from: Mark, until: Bytes, paid: f64 },
}

/// A window and the rate that it brought.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Mark {
    window: Bytes,
    rate: Rate,
}

/// What the explorer wants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    /// Nothing.
    Wait,
    /// A little more window.
    Step,
    /// The growth since the last check paid: its window stays.
    Paid,
    /// It did not pay: back to this window.
    Back(Bytes),
}

impl Explorer {
    pub(super) fn new() -> Explorer {
        Explorer {
            stage: Stage::Resting { left: FIRST_REST },
            rest: FIRST_REST,
            bytes: Bytes::ZERO,
            time: Duration::ZERO,
            epochs: 0,
        }
    }

    /// Something else changed the window: what was measured no longer counts.
    pub(super) fn restart(&mut self) {
        self.enter(Stage::Resting { left: self.rest });
    }

    /// The window is not the limit at the moment: what is received says nothing about it.
    pub(super) fn pause(&mut self) {
        self.enter(self.stage);
    }

    /// The window overflowed: no more trials for long.
    pub(super) fn give_up(&mut self) {
        self.rest = LONGEST_REST;
        self.restart();
    }

    /// Whether a climb is on.
    pub(super) fn is_trying(&self) -> bool {
        matches!(self.stage, Stage::Climbing { .. })
    }

    /// Judges an epoch that was spent under `window` with the window as the limit.
    pub(super) fn handle_epoch(&mut self, epoch: &Epoch, base: Duration, window: Bytes) -> Verdict {
        // Over several epochs, so that the lumps in which data arrives count once and not each time.
        self.bytes += epoch.rate * epoch.span;
        self.time += epoch.span;
        self.epochs += 1;
        let averaged = self.epochs >= AVERAGED;
        let mark = Mark { window, rate: self.bytes / self.time };
        if averaged {
            self.pause();
        }
        match self.stage {
            Stage::Resting { left: 0 } if averaged => {
                self.enter(climb(mark, FIRST_CHECK, PAID_EARLY));
                Verdict::Wait
            }
            Stage::Resting { left } => {
                self.stage = Stage::Resting { left: left.saturating_sub(1) };
                Verdict::Wait
            }
            Stage::Climbing { from, until, paid } if window >= until => {
                if averaged {
                    self.judge(mark, from, paid)
                } else {
                    Verdict::Step
                }
            }
            Stage::Climbing { .. } if epoch.rtt > base * (1 + LONGEST_QUEUE) => Verdict::Wait,
            Stage::Climbing { .. } => Verdict::Step,
        }
    }

    fn judge(&mut self, mark: Mark, from: Mark, paid: f64) -> Verdict {
        let grown = mark.window.as_f64() / from.window.as_f64() - 1.0;
        let followed = mark.rate.as_f64() / from.rate.as_f64() - 1.0;
        if followed <= paid * grown {
            self.rest = (self.rest * 2).min(LONGEST_REST);
            self.enter(Stage::Resting { left: self.rest });
            return Verdict::Back(from.window);
        }
        if paid < PAID {
            let growth = (1.0 + grown) * NEXT_EARLY_CHECK;
            let paid = if growth < CHECK { PAID_EARLY } else { PAID };
            self.enter(climb(from, growth.min(CHECK), paid));
            return Verdict::Wait;
        }
        self.rest = FIRST_REST;
        self.enter(climb(mark, CHECK, PAID));
        Verdict::Paid
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.bytes = Bytes::ZERO;
        self.time = Duration::ZERO;
        self.epochs = 0;
    }
}

/// On from a mark to the window that is `growth` times as large.
fn climb(from: Mark, growth: f64, paid: f64) -> Stage {
    Stage::Climbing { from, until: from.window.scaled(growth), paid }
}
