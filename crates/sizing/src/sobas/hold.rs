use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::adaptive::{EPOCHS_PER_STEP, FIRST_STEP};
use super::epoch::Epoch;
use super::explore::{Explorer, Verdict};
use super::limits::Limits;
use super::manner::Manner;
use crate::EventKind;

/// Queue in aims at which it is taken away.
const EXCESS: f64 = 1.5;

/// After an overflow, the share of the window that is kept at most.
const AFTER_OVERFLOW: f64 = 0.95;

/// Share of the queue aimed for that is kept after it overflowed.
const AIM_AFTER_OVERFLOW: f64 = 0.9;

/// Share of a cut in the window with which the rate must have fallen for the queue to belong to
/// others, or the round trip to a longer route: on a path that we fill ourselves it does not fall
/// at all.
const FELL_WITH_THE_WINDOW: f64 = 0.6;

/// A rate that fell by more than this behind a cut of the window, and more than a single epoch is off
/// by, has not been held by the path but by the window: what still looks like a queue is none.
const SLOWER: f64 = 0.04;

/// Share of what the limits allow at which a path that jitters has caught up with them: its lowest
/// round trip is shorter than what the transfer meets.
const NEARLY_REACHED: f64 = 0.85;

/// What may be jitter, or the receiver's hesitation, as a share of the base round trip.
const JITTER: f64 = 0.25;

/// Epochs in a row that must show a queue before it is taken away: the first one may have
/// measured the change that made it.
const EXCESS_EPOCHS: u32 = 2;

/// What holding decides at the end of an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Move {
    /// Nothing.
    Stay,
    /// The queue is gone though the limits bind: more, by this factor.
    Grow(f64),
    /// A queue stands that need not: down to one that drains in this time.
    Tighten(Duration),
    /// This window, to see whether a larger queue pays, or because a trial did not.
    Set(Bytes),
}

/// What the limits allow while an epoch lasts.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Allowed {
    window: Bytes,
    /// The rate on a path without a queue.
    without_queue: Rate,
    /// The rate at the epoch's round trip.
    with_queue: Rate,
    /// Whether a longer queue may be tried.
    tries: bool,
    /// What delayed acknowledgements add to the queue, as the time it takes to drain.
    hesitation: Duration,
}

/// Watches over the sweet spot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hold {
    manner: &'static Manner,
    /// Epochs since the window was last changed.
    epochs: u32,
    /// Size of the next step, should the path have more to give.
    growth: f64,
    /// The best rate that was seen on this path.
    best: Rate,
    /// Epochs in a row in which too long a queue stood.
    excess: u32,
    /// A tightening whose effect has yet to be judged; of several in a row the first one.
    tightened: Option<Tightening>,
    /// The standing queue that pays on this path, as the time it takes to drain.
    aim: Duration,
    /// A queue that turned out not to be ours.
    foreign: Option<Duration>,
    explorer: Explorer,
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
    pub(super) fn new(manner: &'static Manner, rate: Rate, base: Duration) -> Hold {
        Hold {
            manner,
            epochs: 0,
            growth: FIRST_STEP,
            best: rate,
            excess: 0,
            tightened: None,
            aim: manner.queue_aim(base),
            foreign: None,
            explorer: Explorer::new(manner),
        }
    }

    /// Holding goes on at a path that was held with a queue of `aim` before.
    pub(super) fn again(
        manner: &'static Manner,
        rate: Rate,
        base: Duration,
        aim: Duration,
    ) -> Hold {
        let hold = Hold::new(manner, rate, base);
        Hold { aim: hold.aim.max(aim), ..hold }
    }

    /// The standing queue that pays.
    pub(super) fn aim(&self) -> Duration {
        self.aim
    }

    /// It was `window` with this `rate` and `queue`, and is less: whether that was too much has yet to show.
    pub(super) fn cut(mut self, window: Bytes, rate: Rate, queue: Duration) -> Hold {
        self.tightened = Some(Tightening { rate, window, queue });
        self
    }

    /// Whether the effect of the last change of window has yet to show; losses until then belong
    /// to the window before it.
    pub(super) fn is_settling(&self) -> bool {
        self.epochs < EPOCHS_PER_STEP
    }

    /// A queue that did not go when the window was cut: others', or a longer route's.
    pub(super) fn foreign(&self) -> Option<Duration> {
        self.foreign
    }

    /// Judges an epoch and moves `limits` accordingly. `tries`: a longer queue may be tried.
    pub(super) fn steer(
        &mut self,
        limits: &mut Limits,
        now: Time,
        epoch: &Epoch,
        base: Duration,
        tries: bool,
    ) {
        let window = limits.window_or_max();
        let allowed = Allowed {
            window,
            without_queue: limits.offered(base).unwrap_or(Rate::MAX),
            with_queue: limits.offered(epoch.rtt).unwrap_or(Rate::MAX),
            tries,
            hesitation: limits.hesitation(epoch.rate),
        };
        // The next growth would be the first one in a row.
        let calm = self.growth == FIRST_STEP;
        match self.judge(epoch, base, &allowed) {
            Move::Stay => {}
            Move::Grow(factor) => {
                let grew = limits.steer(now, window.scaled(factor), base);
                if !grew {
                    // Held back by a ceiling: no step that was answered.
                    self.growth = FIRST_STEP;
                } else if calm {
                    limits.emit(now, EventKind::Reopened);
                }
            }
            Move::Tighten(queue) => {
                let window = limits.window_for(epoch.rate, base + queue).min(window);
                limits.steer(now, window, base);
                limits.emit(now, EventKind::Tightened { window });
            }
            Move::Set(window) => {
                limits.steer(now, window, base);
            }
        }
    }

    /// The window overflowed the bottleneck's buffer: less, and not so much again for a while.
    pub(super) fn retreat(
        &mut self,
        limits: &mut Limits,
        now: Time,
        epoch: &Epoch,
        base: Duration,
    ) {
        limits.emit(now, EventKind::Overflowed { rate: epoch.rate });
        limits.forbid(now, limits.window_or_max().scaled(AFTER_OVERFLOW));
        self.epochs = 0;
        self.growth = FIRST_STEP;
        self.aim = self.aim.scaled(AIM_AFTER_OVERFLOW).max(self.manner.queue_aim(base));
        self.explorer.give_up();
        limits.steer(now, limits.window_for(epoch.rate, base + self.aim), base);
    }

    fn judge(&mut self, epoch: &Epoch, base: Duration, allowed: &Allowed) -> Move {
        self.epochs = self.epochs.saturating_add(1);
        if self.is_settling() || epoch.stalled {
            return Move::Stay;
        }
        self.best = self.best.max(epoch.rate);
        let queue = epoch.rtt.saturating_sub(base);
        if let Some(before) = self.tightened {
            if self.was_not_ours(epoch, allowed.window, &before) {
                if may_be_jitter(before.queue, base) {
                    self.explorer.expect_more();
                }
                return Move::Set(before.window);
            }
            if let Some(window) = self.was_no_queue(epoch, base, allowed, &before) {
                return Move::Set(window);
            }
        }
        // A trial stands above the aim by its step.
        let most = self.aim.scaled(EXCESS) + allowed.hesitation;
        if queue > most && !self.explorer.is_trying() {
            return self.tighten(epoch, queue, base, allowed.window);
        }
        self.excess = 0;
        self.tightened = None;
        // Both the probes and the transfer's own pace say that the queue is gone: probes alone
        // may have slipped through between two bursts.
        let pace_without_queue = allowed.without_queue.scaled(1.0 / (1.0 + self.slack(base)));
        if queue < self.aim / 2 && epoch.rate >= pace_without_queue {
            return self.grow(epoch, base);
        }
        self.growth = FIRST_STEP;
        if allowed.tries && epoch.rate >= allowed.with_queue.scaled(NEARLY_REACHED) {
            return self.explore(epoch, queue, allowed.window);
        }
        Move::Stay
    }

    /// The window that gives back what a cut took though no queue was left to take: behind a queue of
    /// our own a path delivers all it can, so that the rate would not have fallen. What the round trip
    /// is then above `base` is jitter or the path's own, and what the full rate needs besides.
    fn was_no_queue(
        &mut self,
        epoch: &Epoch,
        base: Duration,
        allowed: &Allowed,
        before: &Tightening,
    ) -> Option<Bytes> {
        let fell = epoch.rate < before.rate.scaled(1.0 - SLOWER);
        let reached = epoch.rate >= allowed.with_queue.scaled(NEARLY_REACHED);
        // A long one may be others': that is told by how much the rate fell.
        if !fell || !reached || !may_be_jitter(before.queue, base) {
            return None;
        }
        let rest = epoch.rtt.saturating_sub(base);
        self.aim = self.aim.max(rest + self.manner.queue_aim(base)).min(before.queue);
        self.tightened = None;
        self.epochs = 0;
        self.explorer.expect_more();
        let unused = allowed.window.saturating_sub(epoch.rate * epoch.rtt);
        Some((before.rate * (base + self.aim) + unused).min(before.window))
    }

    /// Half of the aimed queue as a share of the base round trip.
    fn slack(&self, base: Duration) -> f64 {
        self.aim.as_secs_f64() / 2.0 / base.as_secs_f64()
    }

    fn explore(&mut self, epoch: &Epoch, queue: Duration, window: Bytes) -> Move {
        match self.explorer.handle_epoch(epoch, window) {
            Verdict::Wait => Move::Stay,
            Verdict::Try(window) | Verdict::Back(window) => {
                self.epochs = 0;
                Move::Set(window)
            }
            Verdict::Paid => {
                self.aim = self.aim.max(queue);
                Move::Stay
            }
        }
    }

    fn grow(&mut self, epoch: &Epoch, base: Duration) -> Move {
        self.epochs = 0;
        self.explorer.restart();
        let least = self.manner.queue_aim(base);
        if self.aim > least {
            // What we had accepted as others' queue, or what had paid, is gone: look again first.
            self.aim = least;
            return Move::Stay;
        }
        let Manner { known_step, unknown_step, .. } = *self.manner;
        let largest =
            if epoch.rate.scaled(known_step) < self.best { known_step } else { unknown_step };
        let growth = self.growth.min(largest);
        self.growth = (self.growth * self.growth).min(known_step);
        Move::Grow(growth)
    }

    fn tighten(&mut self, epoch: &Epoch, queue: Duration, base: Duration, window: Bytes) -> Move {
        self.excess += 1;
        self.growth = FIRST_STEP;
        let short = may_be_jitter(queue, base);
        let convincing = if short { self.manner.short_excess } else { EXCESS_EPOCHS };
        if self.excess < convincing {
            return Move::Stay;
        }
        self.explorer.restart();
        self.epochs = 0;
        self.excess = 0;
        self.tightened.get_or_insert(Tightening { rate: epoch.rate, window, queue });
        Move::Tighten(self.aim)
    }

    /// Whether the rate fell with the window: then the queue is others', or the round trip the
    /// path's own, T_e of the paper, and is accepted as it is.
    fn was_not_ours(&mut self, epoch: &Epoch, window: Bytes, before: &Tightening) -> bool {
        let cut = 1.0 - window.as_f64() / before.window.as_f64();
        let fall = 1.0 - epoch.rate.as_f64() / before.rate.as_f64();
        let accepted = cut > 0.0 && fall > cut * FELL_WITH_THE_WINDOW;
        if accepted {
            self.tightened = None;
            self.aim = before.queue;
            self.foreign = Some(before.queue);
            self.epochs = 0;
        }
        accepted
    }
}

/// Whether what looks like a queue is so short that it may be jitter, on a path of round trip `base`.
pub(super) fn may_be_jitter(queue: Duration, base: Duration) -> bool {
    queue <= base.scaled(JITTER)
}
