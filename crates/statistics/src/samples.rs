use crate::student_t;

/// The mean; `None` if there are no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The squared standard error of the mean of independent `values`; `None` for fewer than two.
pub fn squared_error(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let degrees = values.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    Some(squares / degrees as f64 / values.len() as f64)
}

const CONFIDENCE: f64 = 0.95;

/// The mean of independent `values` and the half-width of its 95 % interval by Student's t; `None` for fewer than two.
pub fn mean_interval(values: &[f64]) -> Option<(f64, f64)> {
    let (mean, squared) = (mean(values)?, squared_error(values)?);
    let t = student_t::two_sided_quantile(1.0 - CONFIDENCE, values.len() as f64 - 1.0);
    Some((mean, t * libm::sqrt(squared)))
}

/// As [`mean_interval`], for samples that may depend on their neighbours, like traffic over long times (Leland, Taqqu,
/// Willinger, Wilson 1994, "On the self-similar nature of Ethernet traffic"). Uses the wider of two intervals: from the samples,
/// and from means of three consecutive samples, which vary more than independent ones would.
pub fn dependent_mean_interval(samples: &[f64]) -> Option<(f64, f64)> {
    let (mean, half) = mean_interval(samples)?;
    let threes: Vec<f64> =
        samples.chunks_exact(3).map(|three| three.iter().sum::<f64>() / 3.0).collect();
    let longer = mean_interval(&threes).map_or(0.0, |(_, half)| half);
    Some((mean, half.max(longer)))
}

/// The 95 % interval of a proportion, from `hits` of `n` (Wilson 1927, "Probable inference").
pub fn wilson(hits: u64, n: u64) -> (f64, f64) {
    wilson_of_clusters(hits, n, 1.0)
}

/// As [`wilson`], for clustered hits. They increase the variance of the proportion by the factor `inflation`, the design effect
/// (Kish 1965, "Survey sampling"), so the samples count as `n / inflation` independent ones.
pub fn wilson_of_clusters(hits: u64, n: u64, inflation: f64) -> (f64, f64) {
    if n == 0 {
        return (0.0, 1.0);
    }
    const Z: f64 = 1.96;
    let (n, p) = (n as f64 / inflation, hits as f64 / n as f64);
    let scale = 1.0 + Z * Z / n;
    let centre = (p + Z * Z / (2.0 * n)) / scale;
    let half = Z * libm::sqrt(p * (1.0 - p) / n + Z * Z / (4.0 * n * n)) / scale;
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_uses_students_t() {
        // Mean 3, s^2 = (4+1+0+1+4)/4 = 2.5, standard error sqrt(2.5/5) = 0.70711,
        // t(0.975, 4) = 2.77645: 1.96325.
        let (mean, half) = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("there are values");
        assert_eq!(mean, 3.0);
        assert!((half - 1.963_25).abs() < 1e-4, "{half}");
        // Values 1, 2, 3: standard error sqrt(1/3), t(2 degrees) = 4.30265.
        let (_, half) = mean_interval(&[1.0, 2.0, 3.0]).expect("there are values");
        assert!((half - 4.302_65 * libm::sqrt(1.0 / 3.0)).abs() < 1e-4);
        assert_eq!(mean_interval(&[1.0]), None);
    }

    /// Wilson's interval for 0 of 100: from 0 to z^2 / (n + z^2) = 3.84 / 103.84 = 0.037.
    #[test]
    fn zero_of_a_hundred_gives_an_interval_up_to_four_percent() {
        let (low, high) = wilson(0, 100);
        assert_eq!(low, 0.0);
        assert!((high - 0.037).abs() < 0.0005, "{high}");
    }
}
