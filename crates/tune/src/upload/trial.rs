use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::recent::Recent;

/// More than the pace, in the first trial: in one round trip it leaves 0.19 BDP in the buffer of a path
/// that is full already, which one of a quarter bears. (BBR tries a quarter more:
/// draft-ietf-ccwg-bbr, ProbeBW_UP.)
const FIRST_STEP: f64 = 0.2;
/// ... and after one that paid: then the path is known to have changed, and by how much is not.
const NEXT_STEP: f64 = 0.4;

/// Share of a step that the rate must follow with.
const PAID: f64 = 0.5;

/// Share of what was delivered behind a trial's queue that the path is sure to take: a rate over a
/// single round trip errs by a hundredth or two.
const SURE: f64 = 0.98;

/// Units of time between two trials, so that with the trial and what pays it back one comes every
/// eight round trips, as BBR's do.
const REST: u64 = 6;

/// What a look may come late and still belong to the trial.
const LATE: Duration = Duration::from_millis(5);

/// The shortest unit, and the least to be delivered in one: acknowledgements come in lumps.
const SHORTEST: Duration = Duration::from_millis(10);
const LEAST: Bytes = Bytes::new(64_000);

/// Tries whether the path takes more: nothing else tells an upload that is held below capacity.
/// What a trial left in the buffer is paid back at once, by sending as much less for as long;
/// meanwhile comes back what it did.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Trial {
    stage: Stage,
    /// Whether a trial has paid, and the next one goes on from there.
    grows: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Stage {
    /// The next trial's time has yet to be set.
    #[default]
    New,
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
pub struct Held {
    /// Its pace.
    pub pace: Rate,
    /// The round trip without a queue.
    pub base: Duration,
    /// The queue.
    pub queue: Duration,
    /// The queue that is put up with.
    pub aim: Duration,
    /// Whether a trial may begin.
    pub may_try: bool,
}

/// What a trial wants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
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
    /// Whether the pace is not the one that is held.
    pub fn is_on(&self) -> bool {
        matches!(self.stage, Stage::Trying { .. } | Stage::PayingBack { .. })
    }

    /// When it is to be looked at again, where that is soon.
    pub fn poll_timeout(&self) -> Option<Time> {
        match self.stage {
            Stage::Trying { until, .. } | Stage::PayingBack { until, .. } => Some(until),
            Stage::New | Stage::Resting { .. } => None,
        }
    }

    /// A look; `recent` is what was delivered of late.
    pub fn handle_look(&mut self, now: Time, held: &Held, recent: &Recent) -> Outcome {
        let Held { pace, base, queue, aim, may_try } = *held;
        let unit = base.max(SHORTEST).max(LEAST / pace);
        match self.stage {
            Stage::New => {
                self.stage = Stage::Resting { until: now + unit * REST };
                Outcome::Wait
            }
            Stage::Resting { until } if may_try && now >= until => {
                Outcome::Set(self.begin(now, pace, unit))
            }
            Stage::Trying { from, began, until } if now >= until => {
                let (since, end) = (began + base, now + base + LATE);
                // A look that came late let it last longer.
                let lasted = now.since(began);
                let until = now + lasted.max(base);
                let seen = recent.rate_between(began, now).filter(|_| lasted >= base * 2);
                if let Some(rate) = seen.filter(|_| queue <= aim) {
                    // So late that most of what it did has come back: all but a round trip of it.
                    let share = 1.0 - base.as_secs_f64() / lasted.as_secs_f64();
                    let rose = (rate.as_f64() - from.as_f64()) / share;
                    let rate = Rate::from_f64((from.as_f64() + rose).max(0.0));
                    return self.judge(now, from, rate, true, unit);
                }
                self.stage = Stage::PayingBack { from, since, end, until };
                Outcome::Set(from.scaled(1.0 - self.step()))
            }
            Stage::PayingBack { from, since, end, until } if now >= until => {
                match recent.rate_between(since, end) {
                    Some(rate) => self.judge(now, from, rate, queue <= aim, unit),
                    // Nobody looked in time.
                    None => {
                        self.rest(now, unit);
                        Outcome::Set(from)
                    }
                }
            }
            _ => Outcome::Wait,
        }
    }

    fn judge(
        &mut self,
        now: Time,
        from: Rate,
        rate: Rate,
        no_queue: bool,
        unit: Duration,
    ) -> Outcome {
        let step = self.step();
        if no_queue && rate >= from.scaled(1.0 + step * PAID) {
            self.grows = true;
            return Outcome::Paid(self.begin(now, from.scaled(1.0 + step), unit));
        }
        // Behind the trial's own queue the path delivered all it can.
        let held = if no_queue { from } else { from.max(rate.scaled(SURE)) };
        let grew = self.grows && rate > from;
        self.rest(now, unit);
        if grew { Outcome::Full(rate) } else { Outcome::Set(held) }
    }

    fn rest(&mut self, now: Time, unit: Duration) {
        self.grows = false;
        self.stage = Stage::Resting { until: now + unit * REST };
    }

    /// Begins a trial; its pace.
    fn begin(&mut self, now: Time, from: Rate, unit: Duration) -> Rate {
        self.stage = Stage::Trying { from, began: now, until: now + unit };
        from.scaled(1.0 + self.step())
    }

    fn step(&self) -> f64 {
        if self.grows { NEXT_STEP } else { FIRST_STEP }
    }
}
