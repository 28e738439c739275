use sweetspot_statistics::Histogram;
use sweetspot_units::Duration;

/// A histogram of the lateness of releases. Its buckets grow with the value, so that every quantile is accurate to
/// one part in sixteen.
#[derive(Debug, Clone)]
pub struct Lateness(Histogram<4>);

impl Default for Lateness {
    fn default() -> Self {
        // Allocate everything now: the loop that records is a real-time one.
        Lateness(Histogram::with_room())
    }
}

impl Lateness {
    /// Counts one release that was `late`.
    pub fn record(&mut self, late: Duration) {
        self.0.add(late.as_nanos(), 1);
    }

    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Lateness) {
        self.0.extend(&other.0);
    }

    /// The number of releases counted.
    pub fn total(&self) -> u64 {
        self.0.total()
    }

    /// The largest lateness.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.0.largest().unwrap_or(0))
    }

    /// The lateness that a share `q` of the releases did not exceed, rounded up by at most a sixteenth.
    pub fn quantile(&self, q: f64) -> Duration {
        let bin = self.0.quantile_bin(q);
        bin.map_or(Duration::ZERO, |bin| Duration::from_nanos(bin.largest).min(self.max()))
    }

    /// Number of releases at most `late` late, to the resolution of the buckets.
    pub fn at_most(&self, late: Duration) -> u64 {
        self.0.at_most(late.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_known_samples_are_accurate() {
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
    fn quantiles_without_samples_are_zero() {
        assert_eq!(Lateness::default().quantile(0.99), Duration::ZERO);
    }
}
