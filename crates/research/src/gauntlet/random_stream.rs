use sweetspot_path::Random;

use sweetspot_experiment::cached_engine::fingerprint;

/// The random numbers for one quantity of one path. Every quantity has its own stream, so adding a
/// quantity does not change the others.
#[derive(Debug, Clone)]
pub(crate) struct RandomStream(Random);

impl RandomStream {
    /// The stream for `quantity` of path `index` in the population with this `seed`.
    pub(crate) fn new(seed: u64, index: u64, quantity: &str) -> RandomStream {
        let digits = fingerprint(format!("{seed}/{index}/{quantity}").as_bytes());
        RandomStream(Random::new(digits as u64 ^ (digits >> 64) as u64))
    }

    /// Uniform in [low, high).
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.unit()
    }

    /// Log-uniform in [low, high): equal ratios are equally likely.
    pub(crate) fn log_between(&mut self, low: f64, high: f64) -> f64 {
        libm::exp(self.between(libm::log(low), libm::log(high)))
    }

    /// A whole number from `low` to `high`, uniformly distributed.
    pub(crate) fn integer(&mut self, low: u64, high: u64) -> u64 {
        low + (self.0.unit() * (high - low + 1) as f64) as u64
    }

    /// True with this probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.0.unit() < probability
    }

    /// A scenario seed within the range that TOML represents exactly.
    pub(crate) fn seed(&mut self) -> u64 {
        self.0.bits() >> 11
    }
}
