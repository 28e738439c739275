//! Uploads, steered by their pace (`SO_MAX_PACING_RATE`).
//!
//! A loss-based sender fills the bottleneck's buffer until it overflows. Paced just below what the
//! path delivers, it fills the path and leaves the buffer empty. The kernel paces TCP by itself
//! (since Linux 4.13, kernel commit 218af599fa63), without the fq qdisc.

mod buffer;
mod drain;
mod meter;
mod recent;
mod trial;

use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

pub use buffer::{BufferAdvice, buffer_for};
use drain::{Drain, Progress};
use meter::{Epoch, Meter};
use recent::Recent;
use trial::{Held, Outcome, Trial};

/// What must have been sent for it to be an upload: slow start has seen the path by then.
const BULK: Bytes = Bytes::new(500_000);

/// The standing queue, as a share of the least round trip and at least, that is put up with.
const QUEUE: f64 = 0.1;
const QUEUE_LEAST: Duration = Duration::from_millis(2);

/// A rate that rose by no more than this in an epoch no longer rises.
const RISING: f64 = 1.1;

/// The pace that is held, as a share of what the path delivers: what an upload gives away for an empty
/// buffer.
const HOLDING: f64 = 0.99;

/// Share of its pace from which an upload counts as held by it.
const BOUND: f64 = 0.95;

/// Epochs in a row that must show a queue before it is taken away.
const EXCESS_EPOCHS: u32 = 2;
/// A queue of this share of a round trip is taken away at once: the path got slower, and fills its
/// buffer as fast as time goes by.
const SURGE: f64 = 0.5;

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
    /// Payload on its way.
    pub in_flight: Bytes,
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
/// until there are none; the next look is no later than at [`Upload::poll_timeout`].
#[derive(Debug)]
pub struct Upload {
    state: State,
    meter: Meter,
    recent: Recent,
    base: Option<Duration>,
    pace: Option<Rate>,
    rest: Duration,
    steps: VecDeque<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// Left alone: the last epoch's rate, and the mean of those with a full path.
    Free { last: Rate, full: Mean },
    /// A queue drains.
    Draining(Drain),
    /// At the sweet spot.
    Holding(Hold),
    /// Left to congestion control until a time: what it was held to, and what it sends since.
    LetGo { until: Time, held: Rate, since: Mean },
}

/// What is known of an upload at the sweet spot.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Hold {
    /// Epochs in a row with a queue.
    excess: u32,
    /// Whether its pace, and not its window, losses or others, held it in the last epoch. Only then
    /// a trial of more would tell something.
    bound: bool,
    /// Since when a queue is there that grows fast.
    surge: Option<Time>,
    /// What more pace would bring.
    trial: Trial,
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
            recent: Recent::default(),
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
        self.recent.handle_look(now, sent.delivered);
        let epoch = self.meter.poll_epoch(now, sent);
        let Some(base) = self.base else { return };
        if sent.delivered < BULK {
            return;
        }
        match self.state {
            State::Draining(drain) => self.drain(now, sent, base, drain),
            State::Holding(hold) if !sent.starved => self.try_more(now, sent, base, hold),
            _ => {}
        }
        let Some(epoch) = epoch.filter(|epoch| !epoch.starved) else { return };
        let queue = epoch.rtt.saturating_sub(base);
        match self.state {
            State::Free { last, full } => self.watch(now, &epoch, base, queue, last, full),
            State::Draining(_) => {}
            State::Holding(hold) => self.hold(now, &epoch, base, queue, hold),
            State::LetGo { until, held, since } => self.reconsider(now, &epoch, until, held, since),
        }
    }

    /// When it is to be looked at again, where that is soon.
    pub fn poll_timeout(&self) -> Option<Time> {
        match &self.state {
            State::Holding(hold) => hold.trial.poll_timeout(),
            _ => None,
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
    fn watch(
        &mut self,
        now: Time,
        epoch: &Epoch,
        base: Duration,
        queue: Duration,
        last: Rate,
        full: Mean,
    ) {
        let full_now = queue > aim(base) && epoch.rate() <= last.scaled(RISING);
        if !full_now {
            // What overflows and recovers is judged by its full epochs alone.
            self.state = State::Free { last: epoch.rate(), full };
            return;
        }
        let mut full = full;
        full.add(epoch);
        let free = full.rate().unwrap_or(epoch.rate());
        self.take_away(StepKind::Taken, now, queue, free);
    }

    /// Begins to drain a `queue` of a path that delivers `rate`.
    fn take_away(&mut self, kind: StepKind, now: Time, queue: Duration, rate: Rate) {
        let why = format!("a queue of {queue} stands at {rate}");
        self.step(kind, Some(rate.scaled(HOLDING)), why);
        self.state = State::Draining(Drain::new(now, rate, queue));
    }

    fn drain(&mut self, now: Time, sent: &Sent, base: Duration, mut drain: Drain) {
        let progress = drain.handle_look(now, sent, base, &self.recent);
        self.state = State::Draining(drain);
        match progress {
            Progress::Goes(pace) => self.step(StepKind::Moved, Some(pace), String::new()),
            Progress::Gone(capacity) => {
                let why = format!("the path is full at {capacity} and its queue gone");
                self.step(StepKind::Held, Some(capacity.scaled(HOLDING)), why);
                self.meter = Meter::default();
                self.state = State::Holding(Hold::default());
            }
            Progress::Stays => {
                let held = self.recent.rate_over(base).unwrap_or(Rate::ZERO);
                self.let_go(now, held, "the queue is others': sending less does not drain it");
            }
        }
    }

    /// Tries more now and then, and takes a queue away at once that grows fast.
    fn try_more(&mut self, now: Time, sent: &Sent, base: Duration, mut hold: Hold) {
        let Some(pace) = self.pace else { return };
        let queue = sent.rtt.saturating_sub(base);
        if queue > base.scaled(SURGE).max(aim(base) * 2) {
            let since = *hold.surge.get_or_insert(now);
            if let Some(rate) = self.recent.rate_over(base).filter(|_| now.since(since) >= base) {
                self.take_away(StepKind::Tightened, now, queue, rate.min(pace));
                return;
            }
        } else {
            hold.surge = None;
        }
        let may_try = hold.bound && hold.excess == 0 && hold.surge.is_none();
        let was_on = hold.trial.is_on();
        let held = Held { pace, base, queue, aim: aim(base), may_try };
        let outcome = hold.trial.handle_look(now, &held, &self.recent);
        if was_on && !hold.trial.is_on() {
            // Its traces are nobody's queue.
            (self.meter, hold.excess) = (Meter::default(), 0);
        }
        self.state = State::Holding(hold);
        match outcome {
            Outcome::Wait => {}
            Outcome::Set(pace) => self.step(StepKind::Moved, Some(pace), String::new()),
            Outcome::Paid(pace) => {
                let why = "the path takes more without a queue".to_owned();
                self.step(StepKind::Reopened, Some(pace), why);
            }
            Outcome::Full(rate) => self.take_away(StepKind::Tightened, now, queue, rate),
        }
    }

    /// Judges an epoch between trials.
    fn hold(&mut self, now: Time, epoch: &Epoch, base: Duration, queue: Duration, mut hold: Hold) {
        let Some(pace) = self.pace.filter(|_| !hold.trial.is_on()) else { return };
        hold.bound = epoch.rate() >= pace.scaled(BOUND);
        hold.excess = if queue > aim(base).scaled(1.5) { hold.excess + 1 } else { 0 };
        self.state = State::Holding(hold);
        if hold.excess >= EXCESS_EPOCHS {
            // A short queue in two epochs: the path cannot be much slower than the pace.
            let rate = epoch.rate().max(pace.scaled(BOUND)).min(pace);
            self.take_away(StepKind::Tightened, now, queue, rate);
        }
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
        if kind == StepKind::Moved && pace == self.pace {
            return;
        }
        let before = std::mem::replace(&mut self.pace, pace);
        self.steps.push_back(Step { kind, before, pace, why });
    }
}

fn aim(base: Duration) -> Duration {
    base.scaled(QUEUE).max(QUEUE_LEAST)
}
