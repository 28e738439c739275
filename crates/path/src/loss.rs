use sweetspot_units::Probability;

use crate::Random;

/// Independent random loss, as on a lossy cable: each packet is lost with the same probability.
#[derive(Debug, Clone)]
pub struct RandomLoss {
    probability: Probability,
    random: Random,
}

impl RandomLoss {
    /// Loses each packet with `probability`; the same seed loses the same packets.
    pub fn new(probability: Probability, seed: u64) -> RandomLoss {
        RandomLoss { probability, random: Random::new(seed) }
    }

    /// Whether the next packet is lost.
    pub fn takes_next(&mut self) -> bool {
        self.probability > Probability::ZERO && self.random.unit() < self.probability.get()
    }
}
