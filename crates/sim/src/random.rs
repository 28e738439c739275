//! Random numbers. Every flow has its own stream, so that its draws do not depend on another flow's events: two runs that
//! differ in one window meet the same cross traffic (common random numbers).

use sweetspot_path::Random;
use sweetspot_units::Duration;

pub(crate) fn stream(seed: u64, kind: u64, index: u64, round: u64) -> Random {
    let mut mixed = seed;
    for part in [kind, index, round] {
        // SplitMix64's finalizer (Steele, Lea, Flood 2014) over each part in turn.
        mixed = mixed.wrapping_add(part.wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ 0x5bf0_3635;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
    }
    Random::new(mixed)
}

/// A duration, uniform from the first to the second.
pub(crate) fn between(random: &mut Random, (low, high): (Duration, Duration)) -> Duration {
    low + (high - low).scaled(random.unit())
}

/// A whole number, uniform from `low` to `high`, both included.
pub(crate) fn whole(random: &mut Random, (low, high): (u64, u64)) -> u64 {
    low + (random.unit() * (high - low + 1) as f64) as u64
}

/// A Pareto variate with this mean and shape: P(X > x) = (scale / x)^shape, scale = mean (shape-1)/shape.
pub(crate) fn pareto(random: &mut Random, mean: f64, shape: f64) -> f64 {
    let scale = mean * (shape - 1.0) / shape;
    // 1 - unit() lies in (0, 1]. Exponential and logarithm take less time than a power.
    scale * libm::exp(-libm::log(1.0 - random.unit()) / shape)
}

pub(crate) fn exponential(random: &mut Random, mean: f64) -> f64 {
    -mean * libm::log(1.0 - random.unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_means_they_are_asked_for() {
        let mut random = stream(1, 2, 3, 4);
        let n = 200_000;
        let mean = |draw: &mut dyn FnMut() -> f64| (0..n).map(|_| draw()).sum::<f64>() / n as f64;
        // Standard error of an exponential's mean: 1/sqrt(n) = 0.2 %.
        assert!((mean(&mut || exponential(&mut random, 2.0)) - 2.0).abs() < 0.02);
        // Shape 2.5 has a variance: mean^2 / (shape (shape - 2)) = 0.8, so 0.2 % again.
        assert!((mean(&mut || pareto(&mut random, 1.0, 2.5)) - 1.0).abs() < 0.02);
        assert!((mean(&mut || whole(&mut random, (10, 15)) as f64) - 12.5).abs() < 0.02);
    }

    #[test]
    fn streams_of_neighbours_differ() {
        assert_ne!(stream(1, 0, 0, 0).bits(), stream(1, 0, 1, 0).bits());
        assert_ne!(stream(1, 0, 0, 0).bits(), stream(1, 0, 0, 1).bits());
        assert_ne!(stream(1, 0, 0, 0).bits(), stream(2, 0, 0, 0).bits());
    }
}
