use sweetspot_units::Probability;

use crate::Random;

/// Random loss. If losses are independent, each packet is lost with the same probability, as on a noisy line. With
/// bursts, the line has two states: the good one loses nothing, the bad one loses everything. (Gilbert, "Capacity of a
/// burst-noise channel", 1960, as RFC 6534 section 3 uses it.) Packets are then lost in runs of a given mean length.
#[derive(Debug, Clone)]
pub struct RandomLoss {
    /// Probability that a packet is lost after a delivered one.
    enters: f64,
    /// Probability that a packet is lost after a lost one.
    stays: f64,
    bad: bool,
    random: Random,
}

impl RandomLoss {
    /// Loses each packet with `probability`, below one; the same seed loses the same packets.
    pub fn new(probability: Probability, seed: u64) -> RandomLoss {
        let probability = probability.get();
        RandomLoss {
            enters: probability,
            stays: probability,
            bad: false,
            random: Random::new(seed),
        }
    }

    /// Loses the share `probability` of all packets, in runs of `mean_run` (at least one) packets on average.
    pub fn in_bursts(probability: Probability, mean_run: u32, seed: u64) -> RandomLoss {
        let (lost, run) = (probability.get(), f64::from(mean_run.max(1)));
        RandomLoss {
            // In equilibrium, equally many runs begin and end: (1 - lost) enters = lost / run.
            enters: (lost / (run * (1.0 - lost))).min(1.0),
            stays: 1.0 - 1.0 / run,
            bad: false,
            random: Random::new(seed),
        }
    }

    /// Draws whether the next packet is lost.
    pub fn takes_next(&mut self) -> bool {
        if self.enters == 0.0 {
            return false;
        }
        let probability = if self.bad { self.stays } else { self.enters };
        self.bad = self.random.unit() < probability;
        self.bad
    }
}
