use sweetspot_units::Duration;

/// Round-trip times of a whole transfer, counted in bins of equal ratio, so that a long transfer
/// takes no more memory than a short one. A quantile is off by at most half a per cent.
#[derive(Debug, Clone)]
pub(crate) struct RttHistogram {
    /// Bin i: at least [`SHORTEST_RTT_S`] x [`BIN_RATIO`]^i.
    bins: Vec<u32>,
    least: Duration,
}

/// The lower end of the first bin, seconds. Shorter times are counted in it.
const SHORTEST_RTT_S: f64 = 1e-6;
/// The ratio of a bin's upper end to its lower end.
const BIN_RATIO: f64 = 1.01;
/// 1 us x 1.01^2048 = 710 s.
const BIN_COUNT: usize = 2048;

impl Default for RttHistogram {
    fn default() -> RttHistogram {
        RttHistogram { bins: vec![0; BIN_COUNT], least: Duration::MAX }
    }
}

impl RttHistogram {
    pub fn record(&mut self, rtt: Duration) {
        self.least = self.least.min(rtt);
        let ratio = (rtt.as_secs_f64() / SHORTEST_RTT_S).max(1.0);
        let bin = (ratio.ln() / BIN_RATIO.ln()) as usize;
        self.bins[bin.min(BIN_COUNT - 1)] += 1;
    }

    /// Least, median, 99th percentile.
    pub fn quantiles(&self) -> Option<[Duration; 3]> {
        let count: u64 = self.bins.iter().map(|n| u64::from(*n)).sum();
        if count == 0 {
            return None;
        }
        let at = |share: f64| {
            let rank = (share * (count - 1) as f64) as u64;
            let mut below = 0;
            let bin = self.bins.iter().position(|n| {
                below += u64::from(*n);
                below > rank
            });
            // The middle of the bin.
            let middle = SHORTEST_RTT_S * BIN_RATIO.powf(bin.unwrap_or(BIN_COUNT) as f64 + 0.5);
            Duration::from_secs_f64(middle).max(self.least)
        };
        Some([self.least, at(0.5), at(0.99)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_a_measurement_there_are_no_quantiles() {
        assert_eq!(RttHistogram::default().quantiles(), None);
    }

    proptest! {
        /// Against the obvious way: sort, and pick.
        #[test]
        fn quantiles_are_within_a_per_cent(
            micros in proptest::collection::vec(10u64..10_000_000, 1..200),
        ) {
            let mut round_trips = RttHistogram::default();
            for n in &micros {
                round_trips.record(Duration::from_micros(*n));
            }
            let mut sorted = micros.clone();
            sorted.sort_unstable();
            let [least, median, high] = round_trips.quantiles().unwrap();
            prop_assert_eq!(least, Duration::from_micros(sorted[0]));
            for (share, got) in [(0.5, median), (0.99, high)] {
                let rank = (share * (sorted.len() - 1) as f64) as usize;
                let expected = sorted[rank] as f64;
                prop_assert!((got.as_micros() as f64 / expected - 1.0).abs() < 0.01);
            }
        }
    }
}
