//! Student's t distribution, for confidence intervals.

use crate::roots;

/// P(|T| > t) with `degrees` of freedom; t and `degrees` must be above zero.
pub fn two_sided_tail(t: f64, degrees: f64) -> f64 {
    incomplete_beta(degrees / (degrees + t * t), degrees / 2.0, 0.5)
}

/// The t that |T| exceeds with probability `tail` (between 0 and 1).
pub fn two_sided_quantile(tail: f64, degrees: f64) -> f64 {
    // The tail falls from 1 to 0; with one degree of freedom, 1e-18 remains at t = 1e18.
    roots::beyond(0.0, 1e18, |t| two_sided_tail(t, degrees) > tail).unwrap_or(1e18)
}

// Abramowitz and Stegun 26.5.8: a continued fraction that converges fast for x < (a + 1)/(a + b +
// 2); otherwise I_x(a, b) = 1 - I_{1-x}(b, a).
/// The regularised incomplete beta function I_x(a, b).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let log_beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    let front = libm::exp(a * libm::log(x) + b * libm::log1p(-x) - log_beta) / a;

    // Lentz's method from the front; `tiny` keeps a denominator from being zero.
    let tiny = 1e-300;
    let (mut c, mut d, mut fraction) = (1.0, 0.0, 1.0);
    for i in 0..500 {
        let m = f64::from(i / 2);
        let term = match i {
            0 => 1.0,
            _ if i % 2 == 0 => m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            _ => -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        };
        d = 1.0 / nonzero(1.0 + term * d, tiny);
        c = nonzero(1.0 + term / c, tiny);
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    // The leading 1 of Lentz's scheme is not part of the fraction.
    front * (fraction - 1.0)
}

fn nonzero(x: f64, tiny: f64) -> f64 {
    if x.abs() < tiny { tiny } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_printed_tables() {
        // From any table of the two-sided t at 95 %: 12.706, 4.303, 2.776, 2.228, 2.042.
        let table = [(1.0, 12.7062), (2.0, 4.3027), (4.0, 2.7764), (10.0, 2.2281), (30.0, 2.0423)];
        for (degrees, t) in table {
            let got = two_sided_quantile(0.05, degrees);
            assert!((got - t).abs() < 1e-4, "{degrees}: {got}");
        }
    }

    #[test]
    fn one_degree_of_freedom_is_the_cauchy_distribution() {
        // P(|T| > t) = 1 - 2/pi atan(t), which is 1/2 at t = 1.
        assert!((two_sided_tail(1.0, 1.0) - 0.5).abs() < 1e-12);
        let t = 3.0;
        let expected = 1.0 - core::f64::consts::FRAC_2_PI * libm::atan(t);
        assert!((two_sided_tail(t, 1.0) - expected).abs() < 1e-12);
    }

    #[test]
    fn the_tail_falls_from_one_to_zero() {
        let mut last = two_sided_tail(0.0, 7.0);
        assert_eq!(last, 1.0);
        for i in 1..1000 {
            let now = two_sided_tail(f64::from(i) * 0.05, 7.0);
            assert!(now < last && now > 0.0);
            last = now;
        }
    }
}
