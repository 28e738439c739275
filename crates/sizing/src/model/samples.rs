/// Standard errors by which an estimate must differ from another value. By chance, 2.3 % of estimates exceed it on one side.
const SIGNIFICANT_ERRORS: f64 = 2.0;

/// The mean of samples and its standard error (Welford, Technometrics 4, 1962).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Samples {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Samples {
    pub(crate) fn add(&mut self, sample: f64) {
        self.extend(Samples { count: 1, mean: sample, squares: 0.0 });
    }

    pub(crate) fn extend(&mut self, more: Samples) {
        let (n, m) = (self.count as f64, more.count as f64);
        let (off, all) = (more.mean - self.mean, (n + m).max(1.0));
        self.squares += more.squares + off * off * n * m / all;
        self.mean += off * m / all;
        self.count += more.count;
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    /// The sum of the squares of the differences from the mean.
    pub(crate) fn squares(&self) -> f64 {
        self.squares
    }

    /// The square of the mean's standard error; infinite for fewer than two samples.
    fn squared_error(&self) -> f64 {
        let n = self.count as f64;
        if self.count < 2 { f64::INFINITY } else { self.squares / (n - 1.0) / n }
    }

    /// Whether the mean is significantly above `value`.
    pub(crate) fn exceeds(&self, value: f64) -> bool {
        self.mean - value > SIGNIFICANT_ERRORS * self.squared_error().sqrt()
    }

    /// Whether the mean is significantly below `value`.
    pub(crate) fn falls_below(&self, value: f64) -> bool {
        value - self.mean > SIGNIFICANT_ERRORS * self.squared_error().sqrt()
    }
}

/// The share of trials in which an event occurred.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Share {
    hits: u64,
    all: u64,
}

impl Share {
    /// Adds `hits` among `all` trials.
    pub(crate) fn add(&mut self, hits: u64, all: u64) {
        self.hits += hits;
        self.all += all.max(hits);
    }

    pub(crate) fn hits(&self) -> u64 {
        self.hits
    }

    /// The share; 0 without trials.
    pub(crate) fn share(&self) -> f64 {
        self.hits as f64 / self.all.max(1) as f64
    }

    /// The same number of trials without an event.
    pub(crate) fn without_hits(&self) -> Share {
        Share { hits: 0, ..*self }
    }

    pub(crate) fn extend(&mut self, more: Share) {
        self.hits += more.hits;
        self.all += more.all;
    }

    /// The share and its squared standard error, after adding one event and one failure: then the error is not zero if events
    /// are few (Agresti and Caffo, The American Statistician 54, 2000).
    fn estimate(&self) -> (f64, f64) {
        let all = self.all as f64 + 2.0;
        let share = (self.hits as f64 + 1.0) / all;
        (share, share * (1.0 - share) / all)
    }

    /// The smallest share that does not differ significantly from this one.
    pub(crate) fn min(&self) -> f64 {
        let (share, error) = self.estimate();
        (share - SIGNIFICANT_ERRORS * error.sqrt()).max(0.0)
    }

    /// The largest share that does not differ significantly from this one.
    pub(crate) fn max(&self) -> f64 {
        let (share, error) = self.estimate();
        (share + SIGNIFICANT_ERRORS * error.sqrt()).min(1.0)
    }

    /// Whether the share is significantly above `other`.
    pub(crate) fn exceeds(&self, other: Share) -> bool {
        let ((share, error), (before, error_before)) = (self.estimate(), other.estimate());
        share - before > SIGNIFICANT_ERRORS * (error + error_before).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        let mut samples = Samples::default();
        values.iter().for_each(|value| samples.add(*value));
        samples
    }

    #[test]
    fn a_mean_differs_beyond_two_standard_errors() {
        // The squares sum to 10: the standard error of the mean is sqrt(10 / 4 / 5) = 0.707.
        let some = samples(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(some.exceeds(1.58) && !some.exceeds(1.59));
        assert!(some.falls_below(4.42) && !some.falls_below(4.41));
        assert!(!samples(&[9.0]).exceeds(0.0), "one sample has no error");
    }

    #[test]
    fn samples_can_be_merged() {
        let mut halves = samples(&[1.0, 5.0]);
        halves.extend(samples(&[2.0, 9.0, 4.0]));
        let whole = samples(&[1.0, 5.0, 2.0, 9.0, 4.0]);
        assert_eq!((halves.count, halves.mean), (whole.count, whole.mean));
        assert!((halves.squares - whole.squares).abs() < 1e-9);
    }

    #[test]
    fn a_shares_bounds_are_two_standard_errors_away() {
        // With one more of each, 1 of 40: 0.025 and twice sqrt(0.025 x 0.975 / 40) = 0.0247.
        let (none, all) = (Share { hits: 0, all: 38 }, Share { hits: 38, all: 38 });
        assert!((none.max() - 0.0744).abs() < 1e-4 && none.min() == 0.0);
        assert!((all.min() - 0.9256).abs() < 1e-4 && all.max() == 1.0);
        assert!(Share::default().min() == 0.0 && Share::default().max() == 1.0, "nothing is known");
    }

    #[test]
    fn a_share_differs_beyond_two_standard_errors() {
        let share = |hits, all| Share { hits, all };
        // With one more of each, 23 and 11 of 1,000: two errors are 2 sqrt((0.023 x 0.977 + 0.011 x 0.989) / 1,000) = 0.0115.
        assert!(share(22, 998).exceeds(share(10, 998)));
        // 22 and 11: the difference is 0.011, two errors 0.0114.
        assert!(!share(21, 998).exceeds(share(10, 998)));
        // Three of a hundred where none of three hundred was lost may be chance.
        assert!(!share(3, 147).exceeds(share(0, 333)));
        assert!(!share(0, 0).exceeds(share(0, 0)));
    }
}
