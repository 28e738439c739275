use sweetspot_statistics::{mean, squared_error};

/// Welch's t (1947) for the difference between two sample means: negative if the mean of `a` is
/// smaller. `None` if a sample has fewer than two values.
pub fn welch(a: &[f64], b: &[f64]) -> Option<f64> {
    let difference = mean(a)? - mean(b)?;
    let error = libm::sqrt(squared_error(a)? + squared_error(b)?);
    if error > 0.0 {
        return Some(difference / error);
    }
    // Without variance, any difference is certain.
    Some(if difference == 0.0 { 0.0 } else { difference.signum() * f64::INFINITY })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistic_is_welchs_t() {
        // Means 2 and 4, variances 1 and 4, three values each: -2 / sqrt(1/3 + 4/3) = -1.5492.
        let t = welch(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]).expect("both spread");
        assert!((t + 1.549_193).abs() < 1e-5, "{t}");
        assert_eq!(welch(&[1.0], &[2.0]), None);
    }

    #[test]
    fn any_difference_without_variance_is_certain() {
        assert_eq!(welch(&[1.0, 1.0], &[2.0, 2.0]), Some(f64::NEG_INFINITY));
        assert_eq!(welch(&[2.0, 2.0], &[2.0, 2.0]), Some(0.0));
    }
}
