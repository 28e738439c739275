use sweetspot_units::Duration;

/// Counts of durations in bins less than 1 % wide: each power of two is divided into 128 bins.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    bins: Vec<u64>,
    count: u64,
    sum: u128,
}

/// A power of two is divided into 2 to this power bins.
const BIN_BITS: u32 = 7;

impl Histogram {
    #[inline]
    pub(crate) fn add(&mut self, value: Duration) {
        let nanos = value.as_nanos();
        let bin = bin(nanos);
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += 1;
        self.count += 1;
        self.sum += u128::from(nanos);
    }

    pub(crate) fn mean(&self) -> Duration {
        match self.count {
            0 => Duration::ZERO,
            n => Duration::from_nanos((self.sum / u128::from(n)) as u64),
        }
    }

    /// The duration that a `share` of all do not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let rank = (share * self.count as f64).ceil() as u64;
        let mut seen = 0;
        for (bin, n) in self.bins.iter().enumerate() {
            seen += n;
            if seen >= rank && *n > 0 {
                return Duration::from_nanos(middle(bin));
            }
        }
        Duration::ZERO
    }
}

/// The bin of a number: its leading bits.
fn bin(nanos: u64) -> usize {
    let log = 63 - (nanos | 1).leading_zeros();
    if log < BIN_BITS {
        return nanos as usize;
    }
    let cut = (nanos >> (log - BIN_BITS)) & ((1 << BIN_BITS) - 1);
    (((log - BIN_BITS + 1) as usize) << BIN_BITS) + cut as usize
}

/// The number in the middle of a bin.
fn middle(bin: usize) -> u64 {
    let (power, cut) = (bin >> BIN_BITS, (bin & ((1 << BIN_BITS) - 1)) as u64);
    if power == 0 {
        return cut;
    }
    let step = 1u64 << (power - 1);
    ((1 << BIN_BITS) + cut) * step + step / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_within_one_percent_of_its_bin() {
        let mut value = 1u64;
        while value < 1 << 50 {
            let error = middle(bin(value)).abs_diff(value) as f64 / value as f64;
            assert!(error < 0.01, "{value}: {error}");
            value += value / 50 + 1;
        }
    }

    #[test]
    fn quantiles_of_a_uniform_spread_are_where_they_should_be() {
        let mut histogram = Histogram::default();
        for ms in 1..=1000 {
            histogram.add(Duration::from_millis(ms));
        }
        // The 990th of 1 ... 1000 ms is 990 ms; the mean is 500.5 ms.
        let p99 = histogram.quantile(0.99).as_secs_f64();
        assert!((p99 - 0.990).abs() < 0.0099, "{p99}");
        assert_eq!(histogram.mean(), Duration::from_micros(500_500));
    }
}
