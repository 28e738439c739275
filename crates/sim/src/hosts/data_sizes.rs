use crate::random;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DataSizes {
    /// Mean size, bytes.
    pub mean: u16,
    /// The largest difference between a packet's size and the mean, bytes.
    pub spread: u16,
    pub seed: u64,
}

/// The kind of random stream that sizes are drawn from.
const SIZES: u64 = 7;

impl DataSizes {
    /// The size of packet `number` of a flow. A retransmission has the size of the original packet.
    #[inline]
    pub(crate) fn of(self, flow: u32, number: u64) -> u16 {
        if self.spread == 0 { self.mean } else { self.drawn(flow, number) }
    }

    #[cold]
    fn drawn(self, flow: u32, number: u64) -> u16 {
        let mut random = random::stream(self.seed, SIZES, flow.into(), number);
        let (mean, spread) = (u64::from(self.mean), u64::from(self.spread));
        random.whole((mean - spread, mean + spread)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_uniform_around_the_mean_and_fixed_per_packet() {
        let sizes = DataSizes { mean: 1500, spread: 500, seed: 1 };
        let drawn: Vec<f64> = (0..20_000).map(|number| f64::from(sizes.of(3, number))).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance =
            drawn.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        // Uniform over 1000 bytes: a variance of 1000^2 / 12, and a standard error of the mean of 289 / sqrt(20,000)
        // = 2 bytes.
        assert!((mean - 1500.0).abs() < 8.0, "{mean}");
        assert!((variance / (1e6 / 12.0) - 1.0).abs() < 0.03, "{variance}");
        assert!(drawn.iter().all(|size| (1000.0..=2000.0).contains(size)));
        assert_eq!(sizes.of(3, 7), sizes.of(3, 7));
        assert_eq!(DataSizes { spread: 0, ..sizes }.of(3, 7), 1500);
    }
}
