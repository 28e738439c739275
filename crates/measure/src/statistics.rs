//! Quantiles, lines and intervals of samples.

use sweetspot_theory::router::student_t;

/// The samples in order.
pub fn sorted(samples: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut samples: Vec<f64> = samples.into_iter().collect();
    samples.sort_unstable_by(f64::total_cmp);
    samples
}

/// The `share` quantile of samples in order, by linear interpolation; `None` if there are none.
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share * last as f64;
    let below = place as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64))
}

/// The median of samples in any order; `None` if there are none.
pub fn median(samples: impl IntoIterator<Item = f64>) -> Option<f64> {
    quantile(&sorted(samples), 0.5)
}

/// A line through points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Its value at 0.
    pub intercept: f64,
    /// How much it rises per unit.
    pub slope: f64,
}

/// The line of least squares through points (x, y, weight); `None` where they do not lie at two places or more.
pub fn line(points: &[(f64, f64, f64)]) -> Option<Line> {
    let total: f64 = points.iter().map(|(.., w)| w).sum();
    if total <= 0.0 {
        return None;
    }
    let mean_x = points.iter().map(|(x, _, w)| x * w).sum::<f64>() / total;
    let mean_y = points.iter().map(|(_, y, w)| y * w).sum::<f64>() / total;
    let spread: f64 = points.iter().map(|(x, _, w)| w * (x - mean_x) * (x - mean_x)).sum();
    if spread <= 0.0 {
        return None;
    }
    let joint: f64 = points.iter().map(|(x, y, w)| w * (x - mean_x) * (y - mean_y)).sum();
    let slope = joint / spread;
    Some(Line { intercept: mean_y - slope * mean_x, slope })
}

/// The mean of samples and the half width of its 95 % interval by Student's t; `None` below two samples.
pub fn mean_interval(samples: &[f64]) -> Option<(f64, f64)> {
    if samples.len() < 2 {
        return None;
    }
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let variance = samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    let t = student_t::two_sided_quantile(0.05, n - 1.0);
    Some((mean, t * (variance / n).sqrt()))
}

/// The same where neighbours may depend on one another, as traffic does over long times (Leland, Taqqu, Willinger, Wilson
/// 1994, "On the self-similar nature of Ethernet traffic"): the wider of the intervals by the samples and by means of three in a
/// row, which differ more than independent ones would.
pub fn dependent_mean_interval(samples: &[f64]) -> Option<(f64, f64)> {
    let (mean, half) = mean_interval(samples)?;
    let threes: Vec<f64> =
        samples.chunks_exact(3).map(|three| three.iter().sum::<f64>() / 3.0).collect();
    let longer = mean_interval(&threes).map_or(0.0, |(_, half)| half);
    Some((mean, half.max(longer)))
}

/// The 95 % interval of a share, given `hits` of `n` (Wilson 1927, "Probable inference").
pub fn wilson(hits: u64, n: u64) -> (f64, f64) {
    if n == 0 {
        return (0.0, 1.0);
    }
    const Z: f64 = 1.96;
    let (n, p) = (n as f64, hits as f64 / n as f64);
    let scale = 1.0 + Z * Z / n;
    let centre = (p + Z * Z / (2.0 * n)) / scale;
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt() / scale;
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_through_points_of_a_line_is_that_line() {
        let points: Vec<_> =
            (0..9).map(|x| (f64::from(x), 3.0 - 0.5 * f64::from(x), 1.0 + f64::from(x))).collect();
        let line = line(&points).unwrap();
        assert!((line.intercept - 3.0).abs() < 1e-12 && (line.slope + 0.5).abs() < 1e-12);
        assert_eq!(super::line(&[(1.0, 2.0, 1.0), (1.0, 3.0, 1.0)]), None);
    }

    #[test]
    fn quantiles_of_eleven_samples_are_the_samples() {
        let samples = sorted((0..11).rev().map(f64::from));
        assert_eq!(quantile(&samples, 0.5), Some(5.0));
        assert_eq!(quantile(&samples, 0.9), Some(9.0));
        assert_eq!(quantile(&samples, 0.25), Some(2.5));
        assert_eq!(quantile(&[], 0.5), None);
    }

    /// Wilson's interval for 0 of 100: 0 to z^2 / (n + z^2) = 3.84 / 103.84 = 0.037.
    #[test]
    fn nothing_seen_in_a_hundred_leaves_up_to_four_in_a_hundred() {
        let (low, high) = wilson(0, 100);
        assert_eq!(low, 0.0);
        assert!((high - 0.037).abs() < 0.0005, "{high}");
    }
}
