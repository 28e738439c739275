use sweetspot_units::{Duration, Time};

use crate::Jitter;

/// Keeps the delays apart from the losses of the same seed: "jitter".
const APART: u64 = 0x6a69_7474_6572;

/// What a packet takes behind a link: the line's delay, and jitter that stretches gaps and never
/// reorders, so that after a late packet all wait for it.
#[derive(Debug, Clone)]
pub struct Propagation {
    delay: Duration,
    jitter: Option<Box<Jitter>>,
    /// When the last packet comes out.
    latest: Time,
}

impl Propagation {
    /// A line of `delay` that varies by up to `jitter`; the same seed gives the same delays.
    pub fn new(delay: Duration, jitter: Duration, seed: u64) -> Propagation {
        let jitter = (jitter > Duration::ZERO).then(|| Box::new(Jitter::new(jitter, seed ^ APART)));
        Propagation { delay, jitter, latest: Time::ZERO }
    }

    /// The least that a packet takes.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// From now on packets take another route. Whoever keeps their order sees to it that none is
    /// overtaken by a later one on a shorter route.
    pub fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// A packet leaves the link at `left`, no earlier than the one before it: when it comes out.
    #[inline(always)]
    pub fn handle_departure(&mut self, left: Time) -> Time {
        let out = left + self.delay;
        let Some(jitter) = &mut self.jitter else { return out };
        self.latest = self.latest.max(out + jitter.next_delay());
        self.latest
    }
}

impl From<Duration> for Propagation {
    /// A line that does not jitter.
    fn from(delay: Duration) -> Propagation {
        Propagation::new(delay, Duration::ZERO, 0)
    }
}
