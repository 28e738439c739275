//! A significance test for the better of two loss forms.

use super::capacity_ratio::Form;
use super::fit::{LossPoint, logarithms};
use crate::error::require;
use crate::{Result, TheoryError};
use sweetspot_statistics::student_t;

/// The result of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FormComparison {
    /// The form that fits better, if the difference is significant.
    pub better: Option<Form>,
    /// The probability of a difference at least as large if both forms fitted equally well.
    pub p_value: f64,
    /// The share of the variance of ln p that the power law explains.
    pub power_law_r2: f64,
    /// The share of the variance of ln p that the exponential explains.
    pub exponential_r2: f64,
}

// E. J. Williams, "The Comparison of Regression Variables", J. R. Stat. Soc. B 21, 1959. Both forms
// are lines for the same ln p, as a function of ln B and of B. The question is which of two
// correlated variables has the stronger correlation with a third. T has n - 3 degrees of freedom.
/// Compares the two forms on `points`; a difference counts if its p-value is below
/// `significance` (e.g. 0.05).
///
/// # Errors
/// With fewer than four points that have loss and a buffer, if loss or buffer do not vary, or if
/// `significance` is not between 0 and 1.
pub fn compare(points: &[LossPoint], significance: f64) -> Result<FormComparison> {
    let between = significance > 0.0 && significance < 1.0;
    require(between, "significance", significance, "above 0 and below 1, e.g. 0.05")?;
    let power: Vec<(f64, f64)> = logarithms(points, Form::PowerLaw);
    let exponential: Vec<(f64, f64)> = logarithms(points, Form::Exponential);
    if power.len() < 4 {
        let fitted = "two loss forms";
        return Err(TheoryError::TooFewPoints { fitted, given: power.len(), needed: 4 });
    }
    let (log_b, log_p): (Vec<f64>, Vec<f64>) = power.iter().copied().unzip();
    let b: Vec<f64> = exponential.iter().map(|p| p.0).collect();

    // Loss decreases, so the correlations are negative; only their magnitude matters.
    let r_power = -correlation(&log_b, &log_p)?;
    let r_exponential = -correlation(&b, &log_p)?;
    let between_them = correlation(&log_b, &b)?;
    let t = williams(r_power, r_exponential, between_them, power.len() as f64);
    let p_value = student_t::two_sided_tail(t, power.len() as f64 - 3.0);
    let better = match p_value < significance {
        true if t > 0.0 => Some(Form::PowerLaw),
        true => Some(Form::Exponential),
        false => None,
    };
    Ok(FormComparison {
        better,
        p_value,
        power_law_r2: r_power * r_power,
        exponential_r2: r_exponential * r_exponential,
    })
}

fn williams(r12: f64, r13: f64, r23: f64, n: f64) -> f64 {
    let determinant = 1.0 - r12 * r12 - r13 * r13 - r23 * r23 + 2.0 * r12 * r13 * r23;
    let mean = (r12 + r13) / 2.0;
    let apart = 1.0 - r23;
    let spread =
        2.0 * (n - 1.0) / (n - 3.0) * determinant.max(0.0) + mean * mean * apart * apart * apart;
    if spread <= 0.0 {
        // B and ln B are collinear: the two forms cannot be distinguished.
        return 0.0;
    }
    (r12 - r13) * libm::sqrt((n - 1.0) * (1.0 + r23) / spread)
}

fn correlation(x: &[f64], y: &[f64]) -> Result<f64> {
    let n = x.len() as f64;
    let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let sum =
        |f: &dyn Fn(f64, f64) -> f64| x.iter().zip(y).map(|(x, y)| f(x - mx, y - my)).sum::<f64>();
    let (xx, yy, xy) = (sum(&|x, _| x * x), sum(&|_, y| y * y), sum(&|x, y| x * y));
    let vary = |values: &[f64]| values.iter().any(|v| *v != values[0]);
    require(vary(x) && vary(y), "points", "without variation", "different losses and buffers")?;
    Ok((xy / libm::sqrt(xx * yy)).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::Packets;
    use sweetspot_units::{Duration, Probability};

    /// Losses of `form` with 3 % of noise in an irregular pattern.
    fn points(loss: impl Fn(f64) -> f64) -> Vec<LossPoint> {
        let noise = [0.03, -0.02, 0.01, -0.03, 0.02, -0.01, 0.03, -0.03];
        let buffers = [10.0, 20.0, 40.0, 70.0, 110.0, 160.0, 220.0, 300.0];
        buffers
            .iter()
            .zip(noise)
            .map(|(&b, e)| LossPoint {
                buffer: Packets::new(b).unwrap(),
                loss: Probability::new(loss(b) * (1.0 + e)).unwrap(),
                delay: Duration::ZERO,
            })
            .collect()
    }

    #[test]
    fn each_form_is_recognised_from_its_points() {
        let pl = compare(&points(|b| 0.3 * libm::pow(b, -0.5)), 0.05).unwrap();
        assert_eq!(pl.better, Some(Form::PowerLaw));
        assert!(pl.power_law_r2 > pl.exponential_r2 && pl.p_value < 0.05);
        let ex = compare(&points(|b| 0.3 * libm::exp(-0.01 * b)), 0.05).unwrap();
        assert_eq!(ex.better, Some(Form::Exponential));
    }

    #[test]
    fn points_between_the_forms_are_undecided() {
        // The geometric mean of both forms.
        let mixed = points(|b| 0.3 * libm::pow(b, -0.28) * libm::exp(-0.002 * b));
        let comparison = compare(&mixed, 0.05).unwrap();
        assert_eq!(comparison.better, None, "{comparison:?}");
    }

    #[test]
    fn williams_statistic_matches_a_hand_calculation() {
        // r12 = 0.9, r13 = 0.8, r23 = 0.7, n = 20: determinant
        // 1 - 0.81 - 0.64 - 0.49 + 1.008 = 0.068; 2 * 19/17 * 0.068 = 0.152;
        // 0.85^2 * 0.027 = 0.0195075; 0.1 * sqrt(19 * 1.7 / 0.1715075) = 1.37233.
        assert!((williams(0.9, 0.8, 0.7, 20.0) - 1.37233).abs() < 1e-4);
        assert_eq!(williams(0.8, 0.8, 0.7, 20.0), 0.0);
        assert_eq!(williams(1.0, 1.0, 1.0, 20.0), 0.0);
    }

    #[test]
    fn too_few_or_flat_points_are_rejected() {
        let all = points(|b| 0.3 * libm::pow(b, -0.5));
        assert!(matches!(compare(&all[..3], 0.05), Err(TheoryError::TooFewPoints { .. })));
        let flat: Vec<LossPoint> =
            all.iter().map(|p| LossPoint { loss: all[0].loss, ..*p }).collect();
        assert!(compare(&flat, 0.05).is_err());
        assert!(compare(&all, 0.0).is_err());
    }
}
