use sweetspot_units::{Bytes, Duration, Rate};

use super::adaptive::{EPOCHS_PER_STEP, FIRST_STEP, REACHED, queue_aim};
use super::epoch::Epoch;
use super::explore::{Explorer, Verdict};

/// Queue in aims at which it is taken away.
const EXCESS: f64 = 1.5;

/// Share of the queue aimed for that is kept after it overflowed.
const AIM_AFTER_OVERFLOW: f64 = 0.9;

/// The largest step of growth towards a rate that the path is known to have carried.
pub(super) const KNOWN_STEP: f64 = 1.125;

/// The largest step of growth beyond it. An ack-clocked window that grows by g puts (g - 1) W
/// into the bottleneck's buffer if the path is full already, so that g is bounded by the
/// smallest buffer worth serving, a tenth of a BDP, not by the BDP.
const UNKNOWN_STEP: f64 = 1.08;

/// Share of a cut in the window with which the rate must have fallen for the queue to belong to
/// others, or the round trip to a longer route: on a path that we fill ourselves it does not fall
/// at all.
const FELL_WITH_THE_WINDOW: f64 = 0.6;

/// The same where others share the path: traffic that yields to our queue takes back up to its
/// share of the path, two thirds of the cut at a load of 70 % (eq 6).
const FELL_LIKE_THE_WINDOW: f64 = 0.9;

/// Growth per epoch of a climb while the queue is short.
const EASY_STEP: f64 = 1.01;

/// Epochs in a row that must show a queue before it is taken away: the first one may have
/// measured the change that made it.
const EXCESS_EPOCHS: u32 = 2;

/// What holding decides at the end of an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Move {
    /// Nothing.
    Stay,
    /// The queue is gone though the limits bind: more, by this factor.
    Grow(f64),
    /// A queue stands that need not: down to one that drains in this time.
    Tighten(Duration),
    /// A segment more: as much as congestion avoidance would add in a round trip (RFC 5681).
    Segment,
    /// This window: the way to a longer queue, or back because it did not pay.
    Set(Bytes),
}

/// What the limits allow while an epoch lasts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Allowed {
    pub window: Bytes,
    /// The rate on a path without a queue.
    pub without_queue: Rate,
    /// The rate at the epoch's round trip.
    pub with_queue: Rate,
    /// Whether others use the path too, so that there is something to win from a longer queue.
    pub shared: bool,
    /// Whether congestion control holds the transfer back, and not the window.
    pub congestion: bool,
    /// What delayed acknowledgements add to the queue, as the time it takes to drain.
    pub hesitation: Duration,
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
    /// Epochs in a row in which too long a queue stood.
    excess: u32,
    /// A tightening whose effect has yet to be judged.
    tightened: Option<Tightening>,
    /// The standing queue that pays on this path, as the time it takes to drain.
    aim: Duration,
    explorer: Explorer,
    /// The queue that is others', or the longer route: T_e - T_m of the paper.
    exogenous: Duration,
    /// Whether a longer queue than the least has paid: then it is not taken away again.
    paid: bool,
}

/// What stood before a tightening.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tightening {
    rate: Rate,
    window: Bytes,
    queue: Duration,
}

impl Hold {
    /// Holding begins at a path of round trip `base` that carried `rate`.
    pub(super) fn new(rate: Rate, base: Duration) -> Hold {
        Hold {
            epochs: 0,
            growth: FIRST_STEP,
            best: rate,
            excess: 0,
            tightened: None,
            aim: queue_aim(base),
            explorer: Explorer::new(),
            exogenous: Duration::ZERO,
            paid: false,
        }
    }

    /// Whether the effect of the last change of window has yet to show; losses until then belong
    /// to the window before it.
    pub(super) fn is_settling(&self) -> bool {
        self.epochs < EPOCHS_PER_STEP
    }

    /// The window overflowed the bottleneck's buffer. The queue to go on with, as the time it
    /// takes to drain.
    pub(super) fn handle_overflow(&mut self, base: Duration) -> Duration {
        self.epochs = 0;
        self.growth = FIRST_STEP;
        self.aim = self.aim.scaled(AIM_AFTER_OVERFLOW).max(queue_aim(base));
        self.explorer.give_up();
        self.aim
    }

    /// The same on a path that others share, where `queue` overflowed.
    pub(super) fn handle_shared_overflow(&mut self, queue: Duration) {
        self.epochs = 0;
        self.growth = FIRST_STEP;
        self.aim = queue;
        self.explorer.give_up();
    }

    /// Growth was held back by a ceiling: it does not count as a step that was answered.
    pub(super) fn handle_ceiling(&mut self) {
        self.growth = FIRST_STEP;
    }

    /// Whether a longer queue than the least has paid.
    pub(super) fn has_paid(&self) -> bool {
        self.paid
    }

    /// Whether the next growth would be the first one in a row.
    pub(super) fn is_calm(&self) -> bool {
        self.growth == FIRST_STEP
    }

    /// Judges an epoch.
    pub(super) fn handle_epoch(
        &mut self,
        epoch: &Epoch,
        base: Duration,
        allowed: &Allowed,
    ) -> Move {
        self.epochs = self.epochs.saturating_add(1);
        if allowed.congestion {
            self.explorer.pause();
        }
        if self.is_settling() || epoch.stalled || allowed.congestion {
            return Move::Stay;
        }
        self.best = self.best.max(epoch.rate);
        let queue = epoch.rtt.saturating_sub(base);
        if let Some(before) = self.tightened.take()
            && self.was_not_ours(epoch, allowed, &before)
        {
            return Move::Set(before.window);
        }
        // A trial stands above the aim by its step.
        let most = self.aim.scaled(EXCESS) + allowed.hesitation;
        if queue > most && !self.explorer.is_trying() && !(allowed.shared && self.paid) {
            return self.tighten(epoch, queue, allowed.window);
        }
        self.excess = 0;
        if self.explorer.is_trying() {
            return self.explore(epoch, base, allowed.window);
        }
        // Both the probes and the transfer's own pace say that the queue is gone: probes alone
        // may have slipped through between two bursts.
        let pace_without_queue = allowed.without_queue.scaled(1.0 / (1.0 + self.slack(base)));
        if queue < self.aim / 2 && epoch.rate >= pace_without_queue {
            return self.grow(epoch, base);
        }
        self.growth = FIRST_STEP;
        if allowed.shared && epoch.rate >= allowed.with_queue.scaled(REACHED) {
            return self.explore(epoch, base, allowed.window);
        }
        Move::Stay
    }

    /// Half of the aimed queue as a share of the base round trip.
    fn slack(&self, base: Duration) -> f64 {
        self.aim.as_secs_f64() / 2.0 / base.as_secs_f64()
    }

    fn explore(&mut self, epoch: &Epoch, base: Duration, window: Bytes) -> Move {
        let queue = epoch.rtt.saturating_sub(base);
        match self.explorer.handle_epoch(epoch, base, window) {
            Verdict::Wait => Move::Stay,
            // An eighth of a round trip of queue, with a little more in others' bursts, fits into
            // any buffer that others share; beyond, one drop is to tell where the buffer ends.
            Verdict::Step if queue < self.exogenous + base / 8 => {
                Move::Set(window.scaled(EASY_STEP))
            }
            Verdict::Step => Move::Segment,
            Verdict::Back(window) => {
                self.epochs = 0;
                Move::Set(window)
            }
            Verdict::Paid => {
                self.paid = true;
                self.aim = self.aim.max(queue);
                Move::Stay
            }
        }
    }

    fn grow(&mut self, epoch: &Epoch, base: Duration) -> Move {
        self.epochs = 0;
        self.explorer.restart();
        let least = queue_aim(base);
        if self.aim > least {
            // What we had accepted as others' queue, or what had paid, is gone: look again first.
            self.aim = least;
            return Move::Stay;
        }
        let largest =
            if epoch.rate.scaled(KNOWN_STEP) < self.best { KNOWN_STEP } else { UNKNOWN_STEP };
        let growth = self.growth.min(largest);
        self.growth = (self.growth * self.growth).min(KNOWN_STEP);
        Move::Grow(growth)
    }

    fn tighten(&mut self, epoch: &Epoch, queue: Duration, window: Bytes) -> Move {
        self.excess += 1;
        self.growth = FIRST_STEP;
        self.explorer.restart();
        if self.excess < EXCESS_EPOCHS {
            return Move::Stay;
        }
        self.epochs = 0;
        self.excess = 0;
        self.tightened = Some(Tightening { rate: epoch.rate, window, queue });
        Move::Tighten(self.aim)
    }

    /// Whether the rate fell with the window: then the queue is others', or the round trip the
    /// path's own, T_e of the paper, and is accepted as it is.
    fn was_not_ours(&mut self, epoch: &Epoch, allowed: &Allowed, before: &Tightening) -> bool {
        let window = allowed.window;
        let cut = 1.0 - window.as_f64() / before.window.as_f64();
        let fall = 1.0 - epoch.rate.as_f64() / before.rate.as_f64();
        let share = if allowed.shared { FELL_LIKE_THE_WINDOW } else { FELL_WITH_THE_WINDOW };
        let accepted = cut > 0.0 && fall > cut * share;
        if accepted {
            self.aim = before.queue;
            self.exogenous = before.queue;
            self.epochs = 0;
        }
        accepted
    }
}
