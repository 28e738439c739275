//! Straight lines through points, by least squares.

use sweetspot_statistics::{Line, student_t};

use crate::error::require;
use crate::{Result, TheoryError};

/// An estimate with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The best value.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

impl Estimate {
    fn new(value: f64, error: f64, t: f64) -> Estimate {
        Estimate { value, low: value - t * error, high: value + t * error }
    }

    /// The estimate of an increasing function of this number.
    pub(crate) fn map(self, rising: impl Fn(f64) -> f64) -> Estimate {
        Estimate { value: rising(self.value), low: rising(self.low), high: rising(self.high) }
    }

    /// The estimate of the negated number.
    pub(crate) fn negated(self) -> Estimate {
        Estimate { value: -self.value, low: -self.high, high: -self.low }
    }
}

/// y = intercept + slope x.
pub(crate) struct FittedLine {
    pub intercept: Estimate,
    pub slope: Estimate,
    pub residual_squares: f64,
}

/// The line through `points`, with intervals of `confidence`. It needs three points, which leave
/// one degree of freedom.
pub(crate) fn line(
    points: &[(f64, f64)],
    confidence: f64,
    fitted: &'static str,
) -> Result<FittedLine> {
    let n = points.len();
    enough(n, 3, fitted)?;
    let Some(line) = Line::through(points) else {
        let (quantity, given) = ("buffers", "all the same".to_owned());
        let wanted = "different, or no slope can be seen";
        return Err(TheoryError::OutOfDomain { quantity, given, wanted });
    };
    let Line { intercept, slope, squares_x, .. } = line;
    let residual = |p: &(f64, f64)| p.1 - intercept - slope * p.0;
    let residual_squares: f64 = points.iter().map(|p| residual(p) * residual(p)).sum();

    let count = n as f64;
    let variance = residual_squares / (count - 2.0);
    let t = student_t::two_sided_quantile(1.0 - confidence, count - 2.0);
    let slope_error = libm::sqrt(variance / squares_x);
    let intercept_error = line.intercept_error(variance, count);
    Ok(FittedLine {
        intercept: Estimate::new(intercept, intercept_error, t),
        slope: Estimate::new(slope, slope_error, t),
        residual_squares,
    })
}

/// The slope of the line through the origin and `points`. It needs two points.
pub(crate) fn through_origin(
    points: &[(f64, f64)],
    confidence: f64,
    fitted: &'static str,
) -> Result<Estimate> {
    enough(points.len(), 2, fitted)?;
    let sxx: f64 = points.iter().map(|p| p.0 * p.0).sum();
    let sxy: f64 = points.iter().map(|p| p.0 * p.1).sum();
    require(sxx > 0.0, "buffers", "all zero", "above zero, or no slope can be seen")?;
    let slope = sxy / sxx;
    let squares: f64 = points.iter().map(|p| (p.1 - slope * p.0) * (p.1 - slope * p.0)).sum();
    let degrees = points.len() as f64 - 1.0;
    let t = student_t::two_sided_quantile(1.0 - confidence, degrees);
    Ok(Estimate::new(slope, libm::sqrt(squares / degrees / sxx), t))
}

fn enough(given: usize, needed: usize, fitted: &'static str) -> Result<()> {
    if given < needed {
        return Err(TheoryError::TooFewPoints { fitted, given, needed });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_noise_matches_a_hand_calculation() {
        // (1,1) (2,3) (3,2): mean 2, 2; Sxx = 2, Sxy = 1: slope 1/2, intercept 1;
        // residuals -1/2, 1, -1/2: 3/2, one degree of freedom: error sqrt(1.5 / 2) = 0.8660,
        // times 12.7062 = 11.004.
        let l = line(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0)], 0.95, "a line").unwrap();
        assert!((l.slope.value - 0.5).abs() < 1e-12 && (l.intercept.value - 1.0).abs() < 1e-12);
        assert!((l.residual_squares - 1.5).abs() < 1e-12);
        assert!((l.slope.high - 11.504).abs() < 1e-3 && (l.slope.low + 10.504).abs() < 1e-3);
    }

    #[test]
    fn a_line_through_the_origin_matches_a_hand_calculation() {
        // (1,2) (2,3): 8/5 = 1.6; residuals 0.4, -0.2: 0.2; error sqrt(0.2 / 5) = 0.2.
        let slope = through_origin(&[(1.0, 2.0), (2.0, 3.0)], 0.95, "a slope").unwrap();
        assert!((slope.value - 1.6).abs() < 1e-12);
        assert!((slope.high - 1.6 - 0.2 * 12.7062).abs() < 1e-4);
    }

    #[test]
    fn two_points_are_too_few_for_an_error_estimate() {
        let e = line(&[(1.0, 1.0), (2.0, 2.0)], 0.95, "a line").err().unwrap();
        assert_eq!(e, TheoryError::TooFewPoints { fitted: "a line", given: 2, needed: 3 });
    }

    #[test]
    fn points_with_equal_x_have_no_slope() {
        assert!(line(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)], 0.95, "a line").is_err());
    }
}
