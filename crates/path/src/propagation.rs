use sweetspot_units::{Duration, Time};

use crate::Jitter;

/// Makes jitter independent of the losses of the same seed. The bytes spell "jitter".
const JITTER_SEED: u64 = 0x6a69_7474_6572;

/// The delay behind a link: the line's propagation, and jitter. Jitter stretches gaps and never reorders, so packets
/// behind a late one wait for it.
#[derive(Debug, Clone)]
pub struct Propagation {
    delay: Duration,
    jitter: Option<Box<Jitter>>,
    /// When the last packet comes out.
    latest: Time,
}

impl Propagation {
    /// A line with a propagation of `delay` and jitter of up to `jitter`. The same seed gives the same delays.
    pub fn new(delay: Duration, jitter: Duration, seed: u64) -> Propagation {
        let jitter =
            (jitter > Duration::ZERO).then(|| Box::new(Jitter::new(jitter, seed ^ JITTER_SEED)));
        Propagation { delay, jitter, latest: Time::ZERO }
    }

    /// The propagation without jitter.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Changes the propagation, as a new route does. The caller makes sure that no packet overtakes an earlier one on a
    /// shorter route.
    pub fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// A packet leaves the link at `left`, no earlier than the one before it. Returns when it comes out.
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
