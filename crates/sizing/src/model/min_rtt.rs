use sweetspot_units::{Duration, Time};

/// The round trip without a queue: the least that was seen, and when it was seen last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MinRtt {
    base: Option<Duration>,
    seen: Time,
}

/// Share by which a sample may lie above the least and still confirm it.
const CONFIRMS: f64 = 1.01;

impl MinRtt {
    /// A round trip of `rtt` was seen.
    pub(crate) fn handle_sample(&mut self, now: Time, rtt: Duration) {
        if rtt == Duration::ZERO {
            return;
        }
        match self.base {
            Some(base) if rtt > base.scaled(CONFIRMS) => {}
            Some(base) => {
                self.base = Some(base.min(rtt));
                self.seen = now;
            }
            None => {
                self.base = Some(rtt);
                self.seen = now;
            }
        }
    }

    /// The round trip without a queue, as far as it is known.
    pub(crate) fn get(&self) -> Option<Duration> {
        self.base
    }

    /// How long it has not been seen.
    pub(crate) fn age(&self, now: Time) -> Duration {
        now.since(self.seen)
    }

    /// The path is another one: what is seen from now on counts.
    pub(crate) fn forget(&mut self) {
        self.base = None;
    }
}
