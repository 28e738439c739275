use core::ops::Deref;

/// Samples in ascending order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sorted(Vec<f64>);

impl FromIterator<f64> for Sorted {
    fn from_iter<I: IntoIterator<Item = f64>>(samples: I) -> Sorted {
        let mut samples: Vec<f64> = samples.into_iter().collect();
        samples.sort_unstable_by(f64::total_cmp);
        Sorted(samples)
    }
}

impl Deref for Sorted {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.0
    }
}

impl Sorted {
    /// The quantile `share` (0 to 1), interpolated between neighbours (Hyndman and Fan 1996, type 7,
    /// the default of R and NumPy); `None` if there are no samples.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        self.quantiles([share]).map(|[quantile]| quantile)
    }

    /// Several quantiles; `None` if there are no samples.
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> Option<[f64; N]> {
        let last = self.len().checked_sub(1)? as f64;
        Some(shares.map(|share| {
            let place = share * last;
            let below = libm::floor(place);
            let (low, high) = (self[below as usize], self[libm::ceil(place) as usize]);
            low + (high - low) * (place - below)
        }))
    }

    /// Each sample with the share of samples up to it: the points of the empirical distribution
    /// function.
    pub fn distribution(&self) -> Vec<(f64, f64)> {
        let count = self.len() as f64;
        self.iter().enumerate().map(|(i, sample)| (*sample, (i + 1) as f64 / count)).collect()
    }
}

/// The [`Sorted::quantile`] of samples in any order.
pub fn quantile(samples: &[f64], share: f64) -> Option<f64> {
    samples.iter().copied().collect::<Sorted>().quantile(share)
}

/// The median of samples in any order; for an even number, the mean of the two middle ones. `None`
/// if there are none.
pub fn median(samples: impl IntoIterator<Item = f64>) -> Option<f64> {
    samples.into_iter().collect::<Sorted>().quantile(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_a_hand_calculation() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(quantile(&values, 0.5), Some(2.5));
        // Position 0.25 x 3 = 0.75: three quarters of the way from 1 to 2.
        assert_eq!(quantile(&values, 0.25), Some(1.75));
        assert_eq!(quantile(&values, 1.0), Some(4.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn deciles_of_eleven_samples_are_the_samples() {
        let samples: Sorted = (0..11).rev().map(f64::from).collect();
        assert_eq!(samples.quantile(0.5), Some(5.0));
        assert_eq!(samples.quantile(0.9), Some(9.0));
        assert_eq!(samples.quantile(0.25), Some(2.5));
        assert_eq!(Sorted::default().quantile(0.5), None);
    }

    #[test]
    fn one_slow_run_does_not_move_the_median() {
        assert_eq!(median([1.0, 50.0, 2.0]), Some(2.0));
        assert_eq!(median([]), None);
    }

    #[test]
    fn a_cumulative_distribution_ends_at_one() {
        let distribution = [3.0, 1.0].into_iter().collect::<Sorted>().distribution();
        assert_eq!(distribution, [(1.0, 0.5), (3.0, 1.0)]);
    }
}
