use sweetspot_units::{Bytes, Duration, Rate};

use super::adaptive::{EPOCHS_PER_STEP, FIRST_STEP, REACHED, queue_aim};
use super::epoch::Epoch;
use super::explore::{Explorer, Verdict};

/// Queue in aims at which it is taken away.
const EXCESS: f64 = 1.5;

/// Share of the queue aimed for that is kept after it overflowed.
const AIM_AFTER_OVERFLOW: f64 = 0.9;

/// The largest step of growth towards a rate that the path is known to have carried.
const KNOWN_STEP: f64 = 1.125;

/// The largest step of growth beyond it. An ack-clocked window that grows by g puts (g - 1) W
/// into the bottleneck's buffer if the path is full already, so that g is bounded by the
/// smallest buffer worth serving, a tenth of a BDP, not by the BDP.
const UNKNOWN_STEP: f64 = 1.08;

/// Share of a cut in the window with which the rate must have fallen for the queue to belong to
/// others, or to a longer route: on a path that we fill ourselves it does not fall at all.
const FELL_WITH_THE_WINDOW: f64 = 0.6;

/// What holding decides at the end of an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Move {
    /// Nothing.
    Stay,
    /// The queue is gone though the limits bind: more, by this factor.
    Grow(f64),
    /// A queue stands that need not: down to this window.
    Tighten(Bytes),
    /// What looked like a queue stays when we go: the path's round trip is this long now.
    Rebase(Duration),
    /// This window, to see whether a larger queue pays, or because it did not.
    Explore(Bytes),
}

/// Watches over the sweet spot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hold {
    /// Epochs since the window was last changed.
    epochs: u32,
    /// Size of the next step, should the path have more to give.
    growth: f64,
    /// The best rate that was seen on this path.
    best: Rate,
    /// Rate and window at the time of each tightening in a row, the last one only.
    tightened: Option<(Rate, Bytes)>,
    /// Tightenings in a row.
    tightenings: u32,
    /// The standing queue that pays on this path, as the time it takes to drain.
    aim: Duration,
    explorer: Explorer,
}

impl Hold {
    /// Holding begins at a path of round trip `base` that carried `rate`.
    pub(super) fn new(rate: Rate, base: Duration) -> Hold {
        Hold {
            epochs: 0,
            growth: FIRST_STEP,
            best: rate,
            tightened: None,
            tightenings: 0,
            aim: queue_aim(base),
            explorer: Explorer::new(),
        }
    }

    /// Whether the effect of the last change of window has yet to show; losses until then belong
    /// to the window before it.
    pub(super) fn is_settling(&self) -> bool {
        self.epochs < EPOCHS_PER_STEP
    }

    /// The window overflowed the bottleneck's buffer. The one to go on with.
    pub(super) fn handle_overflow(&mut self, epoch: &Epoch, base: Duration) -> Bytes {
        self.epochs = 0;
        self.growth = FIRST_STEP;
        self.aim = self.aim.scaled(AIM_AFTER_OVERFLOW).max(queue_aim(base));
        self.explorer.give_up();
        epoch.rate * (base + self.aim)
    }

    /// Growth was held back by a ceiling: it does not count as a step that was answered.
    pub(super) fn handle_ceiling(&mut self) {
        self.growth = FIRST_STEP;
    }

    /// Whether the next growth would be the first one in a row.
    pub(super) fn is_calm(&self) -> bool {
        self.growth == FIRST_STEP
    }

    /// Judges an epoch that was spent under `window`, which allowed `offered`.
    pub(super) fn handle_epoch(
        &mut self,
        epoch: &Epoch,
        base: Duration,
        window: Bytes,
        offered: Rate,
    ) -> Move {
        self.epochs = self.epochs.saturating_add(1);
        if self.is_settling() || epoch.stalled {
            return Move::Stay;
        }
        self.best = self.best.max(epoch.rate);
        let queue = epoch.rtt.saturating_sub(base);
        // A trial stands above the aim by its step.
        if queue > self.aim.scaled(EXCESS) && !self.explorer.is_trying() {
            self.explorer.restart();
            return self.tighten(epoch, base, window);
        }
        self.tightened = None;
        self.tightenings = 0;
        if queue < self.aim / 2 && epoch.rate >= offered.scaled(REACHED) {
            self.explorer.restart();
            return self.grow(epoch);
        }
        self.growth = FIRST_STEP;
        if epoch.rate >= (window / epoch.rtt).scaled(REACHED) {
            return self.explore(epoch, queue, window);
        }
        Move::Stay
    }

    fn explore(&mut self, epoch: &Epoch, queue: Duration, window: Bytes) -> Move {
        match self.explorer.handle_epoch(epoch, window) {
            Verdict::Wait => Move::Stay,
            Verdict::Try(window) | Verdict::Back(window) => {
                self.epochs = 0;
                Move::Explore(window)
            }
            Verdict::Paid => {
                self.aim = self.aim.max(queue);
                Move::Stay
            }
        }
    }

    fn grow(&mut self, epoch: &Epoch) -> Move {
        let largest =
            if epoch.rate.scaled(KNOWN_STEP) < self.best { KNOWN_STEP } else { UNKNOWN_STEP };
        let growth = self.growth.min(largest);
        self.growth *= self.growth;
        self.growth = self.growth.min(KNOWN_STEP);
        self.epochs = 0;
        Move::Grow(growth)
    }

    fn tighten(&mut self, epoch: &Epoch, base: Duration, window: Bytes) -> Move {
        self.epochs = 0;
        self.growth = FIRST_STEP;
        self.tightenings += 1;
        let before = self.tightened.replace((epoch.rate, window));
        // The first tightening after a change measured the change itself: compare from the second.
        if let Some((rate, wider)) = before.filter(|_| self.tightenings > 2) {
            let cut = 1.0 - window.as_f64() / wider.as_f64();
            let fall = 1.0 - epoch.rate.as_f64() / rate.as_f64();
            if cut > 0.0 && fall > cut * FELL_WITH_THE_WINDOW {
                *self = Hold::new(self.best, epoch.rtt);
                return Move::Rebase(epoch.rtt);
            }
        }
        Move::Tighten(epoch.rate * (base + self.aim))
    }
}
