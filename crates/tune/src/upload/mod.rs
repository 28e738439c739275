//! Uploads, steered by their pace (`SO_MAX_PACING_RATE`).
//!
//! A loss-based sender fills the bottleneck's buffer until it overflows. Paced just below what the
//! path delivers, it fills the path and leaves the buffer empty. The kernel paces TCP by itself
//! (since Linux 4.13, kernel commit 218af599fa63), without the fq qdisc.

mod buffer;
mod meter;
mod trial;

use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

pub use buffer::{BufferAdvice, buffer_for};
use meter::{Epoch, Meter};
use trial::{Outcome, Trial};

/// What must have been sent for it to be an upload: slow start has seen the path by then.
const BULK: Bytes = Bytes::new(500_000);

/// The standing queue, as a share of the least round trip and at least, that is put up with.
const QUEUE: f64 = 0.1;
const QUEUE_LEAST: Duration = Duration::from_millis(2);

/// A rate that rose by no more than this in an epoch no longer rises.
const RISING: f64 = 1.1;

/// The pace while a queue drains, and when it has, as shares of what the path delivers. The latter
/// is what an upload gives away for an empty buffer; trials win a part of it back.
const DRAINING: f64 = 0.9;
const HOLDING: f64 = 0.99;

/// Share of its pace from which an upload counts as held by it.
const BOUND: f64 = 0.95;

/// Epochs that a queue may take to drain before it is somebody else's.
const DRAIN_EPOCHS: u32 = 12;

/// Epochs in a row that must show a queue before it is taken away.
const EXCESS_EPOCHS: u32 = 2;

/// An upload that was held to less than this share of what it sends when it is free was not helped.
const HELPED: f64 = 0.98;

/// For how long it is let go before that is judged; doubled each time, up to the longest.
const FIRST_REST: Duration = Duration::from_secs(10);
const LONGEST_REST: Duration = Duration::from_secs(160);

/// What one look at an upload showed. Counters run from the connection's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Payload that reached the peer.
    pub delivered: Bytes,
    /// The smoothed round trip; zero for none.
    pub rtt: Duration,
    /// The least one; zero for none.
    pub minimum_rtt: Duration,
    /// Whether the program has too little to send.
    pub starved: bool,
}

/// A pace to be set, or lifted, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What happened.
    pub kind: StepKind,
    /// The pace that was in force.
    pub before: Option<Rate>,
    /// The most that it may send at; `None`: as it likes.
    pub pace: Option<Rate>,
    /// Why, in words.
    pub why: String,
}

/// The kinds of [`Step`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// An upload with a queue was found.
    Taken,
    /// The queue is gone, and it is held.
    Held,
    /// The path has more to give.
    Reopened,
    /// A queue stood again.
    Tightened,
    /// Holding it does not help.
    LetGo,
    /// A change not worth telling: a trial and its end.
    Moved,
}

/// Paces one connection.
///
/// **Contract.** `now` never goes backwards. After each [`Upload::handle_look`], steps are polled
/// until there are none.
#[derive(Debug)]
pub struct Upload {
    state: State,
    meter: Meter,
    base: Option<Duration>,
    pace: Option<Rate>,
    rest: Duration,
    steps: VecDeque<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// Left alone: the last epoch's rate, and the mean of those with a full path.
    Free { last: Rate, full: Mean },
    /// A queue drains: epochs of that, what the path delivers meanwhile, and what was before.
    Draining { epochs: u32, full: Mean, before: Before },
    /// At the sweet spot: epochs in a row with a queue, and what more pace would bring.
    Holding { excess: u32, trial: Trial, before: Before, held: Mean },
    /// Left to congestion control until a time: what it was held to, and what it sends since.
    LetGo { until: Time, held: Rate, since: Mean },
}

/// What stood before an upload was held back.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Before {
    /// What it sent when it was left alone.
    free: Rate,
    queue: Duration,
}

/// A rate over several epochs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Mean {
    bytes: Bytes,
    span: Duration,
}

impl Mean {
    fn add(&mut self, epoch: &Epoch) {
        self.bytes += epoch.bytes;
        self.span += epoch.span;
    }

    fn rate(&self) -> Option<Rate> {
        (self.span > Duration::ZERO).then(|| self.bytes / self.span)
    }
}

impl Default for Upload {
    fn default() -> Upload {
        Upload {
            state: State::Free { last: Rate::ZERO, full: Mean::default() },
            meter: Meter::default(),
            base: None,
            pace: None,
            rest: FIRST_REST,
            steps: VecDeque::new(),
        }
    }
}

impl Upload {
    /// A look at the connection.
    pub fn handle_look(&mut self, now: Time, sent: &Sent) {
        for rtt in [sent.rtt, sent.minimum_rtt].into_iter().filter(|rtt| *rtt > Duration::ZERO) {
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
        }
        let Some(epoch) = self.meter.poll_epoch(now, sent) else { return };
        let Some(base) = self.base else { return };
        if sent.delivered < BULK || epoch.starved {
            return;
        }
        let queue = epoch.rtt.saturating_sub(base);
        match self.state {
            State::Free { last, full } => self.watch(&epoch, base, queue, last, full),
            State::Draining { epochs, full, before } => {
                self.drain(now, &epoch, base, queue, (epochs + 1, full, before));
            }
            State::Holding { excess, trial, before, held } => {
                self.hold(&epoch, base, queue, (excess, trial, before, held));
            }
            State::LetGo { until, held, since } => self.reconsider(now, &epoch, until, held, since),
        }
    }

    /// The next thing to do, until `None`.
    pub fn poll_step(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// The pace in force.
    pub fn pace(&self) -> Option<Rate> {
        self.pace
    }

    /// Waits for a queue that stands though the rate no longer rises: the path is full.
    fn watch(&mut self, epoch: &Epoch, base: Duration, queue: Duration, last: Rate, full: Mean) {
        let full_now = queue > aim(base) && epoch.rate() <= last.scaled(RISING);
        if !full_now {
            // What overflows and recovers is judged by its full epochs alone.
            self.state = State::Free { last: epoch.rate(), full };
            return;
        }
        let mut full = full;
        full.add(epoch);
        let free = full.rate().unwrap_or(epoch.rate());
        let why = format!("a queue of {queue} stands at {free}");
        self.step(StepKind::Taken, Some(free.scaled(DRAINING)), why);
        let before = Before { free, queue };
        self.state = State::Draining { epochs: 0, full: Mean::default(), before };
    }

    /// For as long as a queue stands the path is busy, and delivers all it can.
    fn drain(
        &mut self,
        now: Time,
        epoch: &Epoch,
        base: Duration,
        queue: Duration,
        (epochs, mut full, before): (u32, Mean, Before),
    ) {
        // The first epoch has seen the change of pace, too.
        if epochs > 1 && queue > QUEUE_LEAST {
            full.add(epoch);
        }
        if queue <= aim(base) {
            let capacity = full.rate().map_or(before.free, |rate| rate.max(before.free));
            let why = format!("the path is full at {capacity} and its queue gone");
            self.step(StepKind::Held, Some(capacity.scaled(HOLDING)), why);
            let (trial, held) = (Trial::default(), Mean::default());
            self.state = State::Holding { excess: 0, trial, before, held };
        } else if epochs >= DRAIN_EPOCHS && queue >= before.queue.scaled(0.5) {
            let held = epoch.rate();
            self.let_go(now, held, "the queue is others': sending less does not drain it");
        } else {
            // One that shrinks but slowly: the path takes less than it did.
            if epochs.is_multiple_of(DRAIN_EPOCHS) {
                let pace = epoch.rate().min(self.pace.unwrap_or(Rate::MAX)).scaled(DRAINING);
                self.step(StepKind::Moved, Some(pace), "the queue drains slowly".to_owned());
            }
            self.state = State::Draining { epochs, full, before };
        }
    }

    fn hold(
        &mut self,
        epoch: &Epoch,
        base: Duration,
        queue: Duration,
        (excess, mut trial, before, mut held): (u32, Trial, Before, Mean),
    ) {
        let Some(pace) = self.pace else { return };
        let rate = epoch.rate();
        held.add(epoch);
        let stands = queue > aim(base).scaled(1.5) && !trial.is_on();
        let excess = if stands { excess + 1 } else { 0 };
        if excess >= EXCESS_EPOCHS {
            self.tighten(queue, rate, pace);
            return;
        }
        if excess > 0 || rate < pace.scaled(BOUND) && !trial.is_on() {
            // The window, losses or others hold it: its pace costs nothing, and a trial of more
            // would tell nothing.
            self.state = State::Holding { excess, trial, before, held };
            return;
        }
        match trial.handle_epoch(epoch, queue, aim(base), pace) {
            Outcome::Wait => {}
            Outcome::Set(pace) => {
                let why = "a trial of more".to_owned();
                self.step(StepKind::Moved, Some(pace), why);
            }
            Outcome::Back(pace) => {
                self.step(StepKind::Moved, Some(pace), "more brought nothing".to_owned());
            }
            Outcome::Paid(pace) => {
                let why = format!("the path takes {rate} without a queue");
                self.step(StepKind::Reopened, Some(pace), why);
            }
        }
        self.state = State::Holding { excess, trial, before, held };
    }

    fn tighten(&mut self, queue: Duration, rate: Rate, pace: Rate) {
        let before = Before { free: rate, queue };
        let why = format!("a queue of {queue} stands at {rate}");
        self.step(StepKind::Tightened, Some(rate.min(pace).scaled(DRAINING)), why);
        self.state = State::Draining { epochs: 0, full: Mean::default(), before };
    }

    fn let_go(&mut self, now: Time, held: Rate, why: &str) {
        self.step(StepKind::LetGo, None, why.to_owned());
        self.state = State::LetGo { until: now + self.rest, held, since: Mean::default() };
    }

    /// Takes the pace up again when being let go has gained nothing.
    fn reconsider(&mut self, now: Time, epoch: &Epoch, until: Time, held: Rate, mut since: Mean) {
        since.add(epoch);
        self.state = State::LetGo { until, held, since };
        if now < until {
            return;
        }
        self.rest = (self.rest * 2).min(LONGEST_REST);
        let free = since.rate().unwrap_or(Rate::ZERO);
        if held >= free.scaled(HELPED) {
            self.state = State::Free { last: epoch.rate(), full: Mean::default() };
        } else {
            self.state = State::LetGo { until: now + self.rest, held, since: Mean::default() };
        }
    }

    fn step(&mut self, kind: StepKind, pace: Option<Rate>, why: String) {
        let before = std::mem::replace(&mut self.pace, pace);
        self.steps.push_back(Step { kind, before, pace, why });
    }
}

fn aim(base: Duration) -> Duration {
    base.scaled(QUEUE).max(QUEUE_LEAST)
}
