//! Random numbers. Every source has its own stream, so that its numbers do not depend on the order
//! in which the kernel runs sources.

use sweetspot_path::Random;
use sweetspot_units::Duration;

/// The stream of source `index` of one side under `seed`.
pub(super) fn stream(seed: u64, side: u64, index: u64) -> Random {
    // 2^64 over the golden ratio, as in SplitMix64: neighbouring indices get unrelated streams.
    Random::new(seed ^ (2 * index + side + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Uniform between the two.
pub(super) fn between(random: &mut Random, (low, high): (Duration, Duration)) -> Duration {
    low + (high - low).scaled(random.unit())
}

/// A whole number, each from `low` to `high` with the same probability.
pub(super) fn whole(random: &mut Random, (low, high): (u64, u64)) -> u64 {
    low + (random.unit() * (high - low + 1) as f64) as u64
}

/// Pareto with this mean and shape: P(X > x) = (scale / x)^shape, scale = mean (shape-1)/shape.
pub(super) fn pareto(random: &mut Random, mean: f64, shape: f64) -> f64 {
    let scale = mean * (shape - 1.0) / shape;
    // 1 - unit() lies in (0, 1].
    scale / (1.0 - random.unit()).powf(1.0 / shape)
}

pub(super) fn exponential(random: &mut Random, mean: f64) -> f64 {
    -mean * (1.0 - random.unit()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_means_they_are_asked_for() {
        let mut random = stream(1, 0, 0);
        let n = 200_000;
        let mean = |draw: &mut dyn FnMut() -> f64| (0..n).map(|_| draw()).sum::<f64>() / n as f64;
        // Standard error of an exponential's mean: 1/sqrt(n) = 0.2 %.
        assert!((mean(&mut || exponential(&mut random, 2.0)) - 2.0).abs() < 0.02);
        // Shape 2.5: variance mean^2 / (shape (shape - 2)) = 0.8, so 0.2 % again.
        assert!((mean(&mut || pareto(&mut random, 1.0, 2.5)) - 1.0).abs() < 0.02);
        assert!((mean(&mut || whole(&mut random, (10, 15)) as f64) - 12.5).abs() < 0.02);
    }
}
