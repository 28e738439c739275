use sweetspot_units::{Bytes, Duration, Rate};

use super::adaptive::EPOCHS_PER_STEP;
use super::average::Average;
use super::epoch::Epoch;

/// How far rarer bursts exceed the peak of late: by as much as that exceeds the mean, and by this
/// share at least.
const RARER: f64 = 0.15;

/// The longest queue that is climbed to, in base round trips. At a BDP of buffer a path is
/// over-buffered for one transfer (section IV), and others' rates are halved (eq 6).
const LONGEST_QUEUE: f64 = 1.5;

/// Share of the window's growth that the rate must have followed with. By eqs (6) and (7) it
/// follows with the share of the path that traffic has which yields to our queue: with less than
/// a twentieth of it there is little left to win.
const PAID: f64 = 0.05;

/// The same over the whole climb, where it ends: the first steps may have filled the path only.
const PAID_IN_ALL: f64 = 0.1;

/// Growth of the window until that is checked for the first time; then always at twice the growth.
const CHECK: f64 = 1.125;

/// Epochs over which a rate is averaged, so that others' fluctuations, some per cent of an
/// epoch's rate, are small beside what a check asks for.
const AVERAGED: u32 = 16;

/// The queue that a herald asks room for, as a share of the base round trip, and at least what
/// the queue fluctuates by: heralds come now and then, the transfer's data always.
const HERALDED: f64 = 1.0 / 16.0;

/// A herald's queue over how far the queue rises and falls.
const BURSTS: f64 = 1.25;

/// Share of that by which the queue may then grow.
const CLAIMED: f64 = 0.2;

/// Epochs until a buffer is asked again whether it has more room.
const FULL_LASTS: u32 = 2048;

/// Epochs after a herald until the transfer's own data, which paused, comes as before.
const EPOCHS_AFTER_HERALD: u32 = 3;

/// Epochs for which the queue is remembered, twice: half a minute on a long path.
const REMEMBERED: u32 = 256;

/// The largest growth of the window at once.
const LARGEST_STEP: f64 = 1.05;

/// Least change of the window, as a share of it.
const LEAST_STEP: f64 = 0.01;

/// The largest cut of the window at once.
const LARGEST_CUT: f64 = 0.1;

/// On a path that others share: climbs to the longest queue that pays and fits.
///
/// A standing queue takes nothing from unresponsive cross traffic, but from window-limited
/// transfers it takes rate (section V-B): there the Maximum Feasible Throughput lies at the
/// largest window that overflows nothing. A loss from there costs a minute of congestion
/// avoidance, so that heralds find out where the buffer ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sharing {
    /// Epochs until the effect of the last change shows.
    settling: u32,
    /// Where the climb began.
    start: Bytes,
    start_rate: Option<Rate>,
    /// What was measured there, or where the climb was last seen to pay.
    from: Option<Mark>,
    /// The window of the next check.
    check: Bytes,
    average: Average,
    /// Epochs for which no longer queue is tried than was seen.
    full: u32,
    /// What the last herald asked for, and whether it found room that was not yet used.
    heralded: Duration,
    granted: bool,
    failed: bool,
    /// Epochs in which losses may be a herald's.
    deaf: u32,
    /// The shortest queue that was ever seen, which is the route's, and the longest.
    shortest: Duration,
    longest: Duration,
    queue: Queue,
    /// How far the queue rises and falls while the window stays.
    spread: Duration,
}

/// What is to be done at the end of an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Move {
    /// Nothing.
    Stay,
    /// This window.
    Set(Bytes),
    /// A herald that asks for room for this much more queue.
    Herald(Duration),
    /// It does not pay: back to this window.
    Leave(Bytes),
}

/// A window and the rate that it brought.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Mark {
    window: Bytes,
    rate: Rate,
}

/// The queue of late: its mean and its peak, over the epochs since half of them were forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Queue {
    latest: Half,
    before: Half,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Half {
    epochs: u32,
    sum: Duration,
    peak: Duration,
}

impl Queue {
    fn add(&mut self, lowest: Duration, highest: Duration) {
        if self.latest.epochs >= REMEMBERED {
            *self = Queue { latest: Half::default(), before: self.latest };
        }
        self.latest.epochs += 1;
        self.latest.sum += (lowest + highest) / 2;
        self.latest.peak = self.latest.peak.max(highest);
    }

    /// The queue that rarer bursts may rise to.
    fn bursts(&self, shortest: Duration) -> Duration {
        let peak = self.latest.peak.max(self.before.peak);
        let own = peak.saturating_sub(shortest);
        peak + peak.saturating_sub(self.mean()).max(own.scaled(RARER))
    }

    fn mean(&self) -> Duration {
        let epochs = u64::from(self.latest.epochs + self.before.epochs).max(1);
        (self.latest.sum + self.before.sum) / epochs
    }

    /// Whether enough epochs have passed for higher ones to be rare.
    fn is_known(&self) -> bool {
        self.before.epochs > 0
    }
}

impl Sharing {
    /// A climb begins from `window`.
    pub(super) fn new(window: Bytes) -> Sharing {
        Sharing {
            settling: EPOCHS_PER_STEP,
            start: window,
            start_rate: None,
            from: None,
            check: window.scaled(CHECK),
            average: Average::default(),
            full: 0,
            heralded: Duration::ZERO,
            granted: false,
            failed: false,
            deaf: 0,
            shortest: Duration::MAX,
            longest: Duration::ZERO,
            queue: Queue::default(),
            spread: Duration::ZERO,
        }
    }

    /// Whether the effect of the last change of window has yet to show.
    pub(super) fn is_settling(&self) -> bool {
        self.settling > 0
    }

    /// Whether losses may be a herald's.
    pub(super) fn is_deaf(&self) -> bool {
        self.deaf > 0
    }

    /// A herald came through, or did not.
    pub(super) fn handle_finding(&mut self, fits: bool) {
        self.granted = fits;
        if !fits {
            self.full = FULL_LASTS;
            self.failed = true;
        }
        self.settling = EPOCHS_AFTER_HERALD;
        self.deaf = EPOCHS_AFTER_HERALD;
        self.average = Average::default();
    }

    /// The transfer's own data overflowed the buffer with so much `in_flight`. The window to go on
    /// with.
    pub(super) fn handle_overflow(&mut self, in_flight: Bytes) -> Bytes {
        self.full = FULL_LASTS;
        let window = in_flight.scaled(1.0 - LARGEST_CUT);
        self.change(window);
        self.begin_below(window);
        window
    }

    /// There was no room even where the climb began: that was too high.
    fn begin_below(&mut self, window: Bytes) {
        if window < self.start {
            self.start = window;
            self.start_rate = None;
            self.from = None;
            self.check = window.scaled(CHECK);
        }
    }

    /// Congestion control holds the transfer back: what is received says nothing of the window.
    pub(super) fn pause(&mut self) {
        self.average = Average::default();
    }

    /// Whether where the buffer ends is known.
    pub(super) fn is_full(&self) -> bool {
        self.full > 0
    }

    /// This queue stood, by whatever made it: it fits.
    pub(super) fn handle_queue(&mut self, queue: Duration) {
        self.longest = self.longest.max(queue);
    }

    /// Judges an epoch that was spent under `window` with the window as the limit.
    pub(super) fn handle_epoch(
        &mut self,
        epoch: &Epoch,
        base: Duration,
        window: Bytes,
        capacity: Rate,
    ) -> Move {
        if std::mem::take(&mut self.granted) {
            let room = capacity * self.heralded.scaled(CLAIMED);
            let step = window.scaled(LARGEST_STEP - 1.0).min(room);
            let next = self.change((window + step).min(self.check));
            self.settling = EPOCHS_AFTER_HERALD;
            return next;
        }
        self.settling = self.settling.saturating_sub(1);
        self.deaf = self.deaf.saturating_sub(1);
        self.full = self.full.saturating_sub(1);
        if self.is_settling() || epoch.stalled {
            return Move::Stay;
        }
        let queue = |rtt: Duration| rtt.saturating_sub(base);
        self.shortest = self.shortest.min(queue(epoch.rtt));
        self.queue.add(queue(epoch.rtt), queue(epoch.highest_rtt));
        self.average.add(epoch);
        self.spread = self.spread.max(self.average.spread());
        let Some(from) = self.from else {
            self.from = self.average.rate(AVERAGED).map(|rate| Mark { window, rate });
            self.start_rate = self.average.rate(AVERAGED);
            return Move::Stay;
        };
        if window >= self.check {
            let Some(rate) = self.average.rate(AVERAGED) else { return Move::Stay };
            let grown = window.as_f64() / from.window.as_f64() - 1.0;
            let followed = rate.as_f64() / from.rate.as_f64() - 1.0;
            if followed < PAID * grown {
                return Move::Leave(self.start);
            }
            self.check = window.scaled(1.0 + 2.0 * grown);
            self.from = Some(Mark { window, rate });
        }
        self.climb(base, window, capacity)
    }

    fn climb(&mut self, base: Duration, window: Bytes, capacity: Rate) -> Move {
        if std::mem::take(&mut self.failed) {
            // The next burst of others may come where the herald was.
            let back = cut(window, capacity * (self.heralded / 2));
            return if back < self.start { Move::Leave(self.start) } else { self.change(back) };
        }
        if self.is_full() {
            return self.guard(window, capacity);
        }
        if self.queue.mean() > base.scaled(LONGEST_QUEUE) {
            return Move::Stay;
        }
        self.heralded = base.scaled(HERALDED).max(self.spread.scaled(BURSTS));
        Move::Herald(self.heralded)
    }

    /// Keeps the queue as long as others' bursts still fit, and no longer.
    fn guard(&mut self, window: Bytes, capacity: Rate) -> Move {
        if let Some((rate, start)) = self.average.rate(AVERAGED).zip(self.start_rate) {
            let grown = window.as_f64() / self.start.as_f64() - 1.0;
            if rate.as_f64() / start.as_f64() - 1.0 < PAID_IN_ALL * grown {
                return Move::Leave(self.start);
            }
        }
        let bursts = self.queue.bursts(self.shortest);
        let cut = cut(window, capacity * bursts.saturating_sub(self.longest));
        if cut < window.scaled(1.0 - LEAST_STEP) {
            // A queue that stays though the window is back where the climb began is not ours.
            return if cut < self.start { Move::Leave(self.start) } else { self.change(cut) };
        }
        let step = window.scaled(LEAST_STEP);
        if self.queue.is_known() && bursts + step / capacity < self.longest {
            return self.change(window + step);
        }
        Move::Stay
    }

    fn change(&mut self, window: Bytes) -> Move {
        self.settling = EPOCHS_PER_STEP;
        self.average = Average::default();
        self.queue = Queue::default();
        Move::Set(window)
    }
}

/// So much less window, in steps whose effect can be seen.
fn cut(window: Bytes, excess: Bytes) -> Bytes {
    window.saturating_sub(excess).max(window.scaled(1.0 - LARGEST_CUT))
}
