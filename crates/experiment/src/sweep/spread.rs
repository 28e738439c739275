use serde::Serialize;
use sweetspot_theory::router::student_t::two_sided_quantile;

use crate::statistics::{mean, squared_error};

/// The mean of a quantity over seeds, with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval, by Student's t; `None` with one seed.
    pub half_width: Option<f64>,
    /// How many seeds.
    pub seeds: usize,
}

/// Confidence level of the interval.
const CONFIDENCE: f64 = 0.95;

impl Spread {
    /// The spread of independent `values`; `None` where there are none.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let (count, mean) = (values.len(), mean(values)?);
        let half_width = squared_error(values).map(|squared| {
            let degrees = (count - 1) as f64;
            two_sided_quantile(1.0 - CONFIDENCE, degrees) * libm::sqrt(squared)
        });
        Some(Spread { mean, half_width, seeds: count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        // Mean 3, s^2 = (4+1+0+1+4)/4 = 2.5, standard error sqrt(2.5/5) = 0.70711,
        // t(0.975, 4) = 2.77645: 1.96325.
        let spread = Spread::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("there are values");
        assert_eq!(spread.mean, 3.0);
        assert!((spread.half_width.unwrap() - 1.963_25).abs() < 1e-4, "{spread:?}");
    }

    #[test]
    fn one_seed_has_a_mean_and_no_interval() {
        let spread = Spread::of(&[7.0]).expect("there is a value");
        assert_eq!((spread.mean, spread.half_width), (7.0, None));
        assert_eq!(Spread::of(&[]), None);
    }
}
