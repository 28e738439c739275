use sweetspot_units::Duration;

/// A small, fast, reproducible generator: xoshiro256++ (Blackman and Vigna 2021), seeded by SplitMix64. The
/// same seed gives the same numbers on every platform.
#[derive(Debug, Clone)]
pub struct Random {
    s: [u64; 4],
}

impl Random {
    /// A generator with a sequence that depends only on `seed`.
    pub fn new(seed: u64) -> Random {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Random { s: [next(), next(), next(), next()] }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.s;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// Uniform in [0, 1), with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A random duration, uniform between the two given.
    pub fn between(&mut self, (low, high): (Duration, Duration)) -> Duration {
        low + (high - low).scaled(self.unit())
    }

    /// A whole number, uniform from `low` to `high`, both included.
    pub fn whole(&mut self, (low, high): (u64, u64)) -> u64 {
        low + (self.unit() * (high - low + 1) as f64) as u64
    }

    /// A Pareto variate with this mean and shape: P(X > x) = (scale / x)^shape, scale = mean (shape-1)/shape.
    pub fn pareto(&mut self, mean: f64, shape: f64) -> f64 {
        let scale = mean * (shape - 1.0) / shape;
        // 1 - unit() is in (0, 1]. An exponential and a logarithm are faster than a power.
        scale * libm::exp(-libm::log(1.0 - self.unit()) / shape)
    }

    /// An exponential variate with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_draws_have_the_requested_means() {
        let mut random = Random::new(1);
        let n = 200_000;
        let mean = |draw: &mut dyn FnMut() -> f64| (0..n).map(|_| draw()).sum::<f64>() / n as f64;
        // Standard error of an exponential's mean: 1/sqrt(n) = 0.2 %.
        assert!((mean(&mut || random.exponential(2.0)) - 2.0).abs() < 0.02);
        // Shape 2.5 has a variance: mean^2 / (shape (shape - 2)) = 0.8, so 0.2 % again.
        assert!((mean(&mut || random.pareto(1.0, 2.5)) - 1.0).abs() < 0.02);
        assert!((mean(&mut || random.whole((10, 15)) as f64) - 12.5).abs() < 0.02);
    }
}
