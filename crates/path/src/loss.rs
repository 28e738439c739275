use sweetspot_units::Probability;

use crate::Random;

/// Random loss. Alone, each packet is lost with the same probability, as on a noisy line. In bursts, the line is in one
/// of two states, good, in which nothing is lost, and bad, in which all is (Gilbert, "Capacity of a burst-noise
/// channel", 1960, as RFC 6534 section 3 uses it): packets are lost in runs of a given mean length.
#[derive(Debug, Clone)]
pub struct RandomLoss {
    /// That a packet after one that came through is lost.
    enters: f64,
    /// That a packet after a lost one is lost, too.
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

    /// Loses the share `probability` of all packets, in runs of `mean_run` packets on average, at least one.
    pub fn in_bursts(probability: Probability, mean_run: u32, seed: u64) -> RandomLoss {
        let (lost, run) = (probability.get(), f64::from(mean_run.max(1)));
        RandomLoss {
            // In equilibrium as many runs begin as end: (1 - lost) enters = lost / run.
            enters: (lost / (run * (1.0 - lost))).min(1.0),
            stays: 1.0 - 1.0 / run,
            bad: false,
            random: Random::new(seed),
        }
    }

    /// Whether the next packet is lost.
    pub fn takes_next(&mut self) -> bool {
        if self.enters == 0.0 {
            return false;
        }
        let probability = if self.bad { self.stays } else { self.enters };
        self.bad = self.random.unit() < probability;
        self.bad
    }
}
