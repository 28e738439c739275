use serde::Serialize;
use sweetspot_statistics::{mean, mean_interval};

/// The mean of a quantity over seeds, with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// Half-width of the 95 % confidence interval, by Student's t; `None` with one seed.
    pub half_width: Option<f64>,
    /// Number of seeds.
    pub seeds: usize,
}

impl Spread {
    /// The spread of independent `values`; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let half_width = mean_interval(values).map(|(_, half)| half);
        Some(Spread { mean: mean(values)?, half_width, seeds: values.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_uses_students_t() {
        // Mean 3, s^2 = (4+1+0+1+4)/4 = 2.5, standard error sqrt(2.5/5) = 0.70711,
        // t(0.975, 4) = 2.77645: 1.96325.
        let spread = Spread::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("there are values");
        assert_eq!(spread.mean, 3.0);
        assert!((spread.half_width.unwrap() - 1.963_25).abs() < 1e-4, "{spread:?}");
    }

    #[test]
    fn one_seed_gives_a_mean_but_no_interval() {
        let spread = Spread::of(&[7.0]).expect("there is a value");
        assert_eq!((spread.mean, spread.half_width), (7.0, None));
        assert_eq!(Spread::of(&[]), None);
    }
}
