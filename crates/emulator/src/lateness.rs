use sweetspot_units::Duration;

/// Buckets per factor of two: a quantile is exact to 1/16.
const BUCKETS_PER_OCTAVE: u64 = 16;
const BUCKET_COUNT: usize = 61 * BUCKETS_PER_OCTAVE as usize;

/// A histogram of how late packets were released. Its buckets grow with the value, so that every quantile is exact
/// to one part in sixteen.
#[derive(Debug, Clone)]
pub struct Lateness {
    counts: Box<[u64]>,
    total: u64,
    max: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        Lateness { counts: vec![0; BUCKET_COUNT].into(), total: 0, max: Duration::ZERO }
    }
}

impl Lateness {
    /// Counts one release that was `late`.
    pub fn record(&mut self, late: Duration) {
        self.counts[bucket(late.as_nanos())] += 1;
        self.total += 1;
        self.max = self.max.max(late);
    }

    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Lateness) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    /// The number of releases counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The largest lateness.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The lateness that a share `q` of the releases did not exceed, rounded up by at most a
    /// sixteenth.
    pub fn quantile(&self, q: f64) -> Duration {
        let wanted = (self.total as f64 * q).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(upper_end(index)).min(self.max);
            }
        }
        self.max
    }

    /// The number of releases that were at most `late` late, to the resolution of the buckets.
    pub fn at_most(&self, late: Duration) -> u64 {
        self.counts[..=bucket(late.as_nanos())].iter().sum()
    }
}

/// Values below 16 have a bucket each; above, each factor of two has sixteen.
fn bucket(value: u64) -> usize {
    if value < BUCKETS_PER_OCTAVE {
        return value as usize;
    }
    let octave = value.ilog2() - BUCKETS_PER_OCTAVE.ilog2();
    let fine = (value >> octave) - BUCKETS_PER_OCTAVE;
    (u64::from(octave + 1) * BUCKETS_PER_OCTAVE + fine) as usize
}

/// The largest value in a bucket.
fn upper_end(index: usize) -> u64 {
    let (octave, fine) = (index as u64 / BUCKETS_PER_OCTAVE, index as u64 % BUCKETS_PER_OCTAVE);
    if octave == 0 {
        return fine;
    }
    let low = (BUCKETS_PER_OCTAVE + fine) << (octave - 1);
    low + ((1 << (octave - 1)) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_a_known_sample_are_right() {
        let mut lateness = Lateness::default();
        // 1 to 1000 us: the median is 500 us, the 99th percentile 990 us.
        for us in 1..=1000 {
            lateness.record(Duration::from_micros(us));
        }
        let within = |q: f64, us: u64| {
            let found = lateness.quantile(q).as_nanos();
            found >= us * 1000 && found <= us * 1000 * 17 / 16
        };
        assert!(within(0.5, 500) && within(0.99, 990));
        assert_eq!(lateness.quantile(1.0), Duration::from_micros(1000));
        assert_eq!(lateness.max(), Duration::from_micros(1000));
    }

    #[test]
    fn nothing_recorded_is_zero() {
        assert_eq!(Lateness::default().quantile(0.99), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn every_value_lies_in_its_bucket(value: u64) {
            let index = bucket(value);
            prop_assert!(index < BUCKET_COUNT);
            prop_assert!(value <= upper_end(index));
            prop_assert!(index == 0 || value > upper_end(index - 1));
        }
    }
}
