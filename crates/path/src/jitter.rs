use sweetspot_units::Duration;

use crate::Random;

/// Extra delay of each packet, uniform between zero and a maximum. The pipe behind it keeps the
/// order, so jitter stretches gaps and never reorders.
#[derive(Debug, Clone)]
pub struct Jitter {
    max: Duration,
    random: Random,
}

impl Jitter {
    /// Jitter of up to `max`. The same seed gives the same delays.
    pub fn new(max: Duration, seed: u64) -> Jitter {
        Jitter { max, random: Random::new(seed) }
    }

    /// The next packet's extra delay.
    pub fn next_delay(&mut self) -> Duration {
        if self.max == Duration::ZERO {
            return Duration::ZERO;
        }
        self.max.scaled(self.random.unit())
    }
}
