use sweetspot_units::Duration;

use crate::Random;

/// Extra delay of each packet, uniform between zero and a maximum. The pipe behind it keeps the
/// order, so jitter stretches gaps and never reorders.
#[derive(Debug, Clone)]
pub struct Jitter {
    most: Duration,
    random: Random,
}

impl Jitter {
    /// Jitter of up to `most`. The same seed gives the same delays.
    pub fn new(most: Duration, seed: u64) -> Jitter {
        Jitter { most, random: Random::new(seed) }
    }

    /// The next packet's extra delay.
    pub fn next_delay(&mut self) -> Duration {
        if self.most == Duration::ZERO {
            return Duration::ZERO;
        }
        self.most.scaled(self.random.unit())
    }
}
