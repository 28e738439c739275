//! Means, quantiles and errors of samples.

/// The quantile `p` (0 to 1) of `values`, interpolated between neighbours (Hyndman and Fan 1996,
/// type 7); `None` if there are no values.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = p * sorted.len().checked_sub(1)? as f64;
    let below = place.floor();
    let (low, high) = (sorted[below as usize], sorted[place.ceil() as usize]);
    Some(low + (high - low) * (place - below))
}

/// The mean; `None` where there are none.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// `part / whole`; `None` if `whole` is not above zero.
pub fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// The square of the standard error of the mean of independent `values`; `None` for fewer than two.
pub fn squared_error(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let degrees = values.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    Some(squares / degrees as f64 / values.len() as f64)
}

/// Welch's t (1947) of the difference between two samples' means: negative if the mean of `a` is
/// less. `None` if a sample has fewer than two values.
pub fn welch(a: &[f64], b: &[f64]) -> Option<f64> {
    let difference = mean(a)? - mean(b)?;
    let error = libm::sqrt(squared_error(a)? + squared_error(b)?);
    if error > 0.0 {
        return Some(difference / error);
    }
    // Without spread any difference is certain.
    Some(if difference == 0.0 { 0.0 } else { difference.signum() * f64::INFINITY })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_by_hand() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(quantile(&values, 0.5), Some(2.5));
        // Place 0.25 x 3 = 0.75: three quarters of the way from 1 to 2.
        assert_eq!(quantile(&values, 0.25), Some(1.75));
        assert_eq!(quantile(&values, 1.0), Some(4.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn t_is_welchs() {
        // Means 2 and 4, variances 1 and 4, of three each: -2 / sqrt(1/3 + 4/3) = -1.5492.
        let t = welch(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]).expect("both spread");
        assert!((t + 1.549_193).abs() < 1e-5, "{t}");
        assert_eq!(welch(&[1.0], &[2.0]), None);
    }

    #[test]
    fn without_spread_any_difference_is_certain() {
        assert_eq!(welch(&[1.0, 1.0], &[2.0, 2.0]), Some(f64::NEG_INFINITY));
        assert_eq!(welch(&[2.0, 2.0], &[2.0, 2.0]), Some(0.0));
    }
}
