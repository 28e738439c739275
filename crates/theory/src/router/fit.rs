//! Fits the parameters a, b and f to measurements or simulations, as router-buffer §VI-A does for
//! Figs 13-16.

use sweetspot_units::{Duration, Probability};

use super::capacity_ratio::Form;
use super::loss_form::LossForm;
use super::per_flow::RouterLink;
use super::regression;
pub use super::regression::Estimate;
use crate::Result;
use crate::error::require;
use crate::packets::Packets;

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossPoint {
    /// The router's buffer.
    pub buffer: Packets,
    /// The loss rate observed with this buffer.
    pub loss: Probability,
    /// The mean queueing delay observed with this buffer.
    pub delay: Duration,
}

/// A loss form fitted to points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossFit {
    /// The form with the best parameters.
    pub form: LossForm,
    /// The factor, with its confidence interval.
    pub a: Estimate,
    /// The decay, with its confidence interval.
    pub b: Estimate,
    /// The sum of squared residuals of ln p.
    pub residual_squares: f64,
    /// The number of points with loss. Points without loss are excluded, because their loss has no
    /// logarithm.
    pub points: usize,
}

// Router-buffer §VI-A: PL is a line in a log-log plot, EX in a linear-log one.
/// Fits `form` to `points` by least squares on ln p, with intervals of `confidence` (e.g. 0.95).
///
/// # Errors
/// With fewer than three points that have loss and a buffer, if their buffers are the same, if
/// the loss does not fall with the buffer, or if `confidence` is not between 0 and 1.
pub fn loss(points: &[LossPoint], form: Form, confidence: f64) -> Result<LossFit> {
    require_confidence(confidence)?;
    let logs = logarithms(points, form);
    let line = regression::line(&logs, confidence, "a loss form")?;
    let b = line.slope.negated();
    require(b.value > 0.0, "decay", b.value, "above zero: loss must fall with the buffer")?;
    let a = line.intercept.map(libm::exp);
    Ok(LossFit {
        form: LossForm::new(form, a.value, b.value)?,
        a,
        b,
        residual_squares: line.residual_squares,
        points: logs.len(),
    })
}

// Router-buffer eq. (9): d(B) = f B / C, a line through the origin.
/// Fits f to `points` measured at a link with the capacity and packet size of `link`. The caller
/// must exclude points beyond the cutoff, where the delay stops growing.
///
/// # Errors
/// With fewer than two points, if no buffer is above zero, or if `confidence` is not between 0
/// and 1.
pub fn delay_slope(points: &[LossPoint], link: &RouterLink, confidence: f64) -> Result<Estimate> {
    require_confidence(confidence)?;
    let service = link.packet().as_f64() * 8.0 / link.capacity().as_f64();
    let delays: Vec<(f64, f64)> =
        points.iter().map(|p| (p.buffer.get() * service, p.delay.as_secs_f64())).collect();
    regression::through_origin(&delays, confidence, "the delay's slope")
}

/// ln p as a function of ln B (power law) or B (exponential), for the points that have both.
pub(crate) fn logarithms(points: &[LossPoint], form: Form) -> Vec<(f64, f64)> {
    points
        .iter()
        .filter(|p| p.loss.get() > 0.0 && p.buffer.get() > 0.0)
        .map(|p| {
            let x = match form {
                Form::PowerLaw => libm::log(p.buffer.get()),
                Form::Exponential => p.buffer.get(),
            };
            (x, libm::log(p.loss.get()))
        })
        .collect()
}

fn require_confidence(confidence: f64) -> Result<()> {
    let between = confidence > 0.0 && confidence < 1.0;
    require(between, "confidence", confidence, "above 0 and below 1, e.g. 0.95")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_units::{Bytes, Rate};

    fn points(loss: impl Fn(f64) -> f64) -> Vec<LossPoint> {
        [10.0, 20.0, 40.0, 80.0, 160.0, 320.0]
            .iter()
            .map(|&b| LossPoint {
                buffer: Packets::new(b).unwrap(),
                loss: Probability::new(loss(b)).unwrap(),
                // f = 0.4 at 240 us per packet.
                delay: Duration::from_secs_f64(0.4 * b * 240e-6),
            })
            .collect()
    }

    #[test]
    fn a_fit_of_exact_points_recovers_their_parameters() {
        let pl = points(|b| 0.3 * libm::pow(b, -0.5));
        let fit = loss(&pl, Form::PowerLaw, 0.95).unwrap();
        assert!((fit.a.value - 0.3).abs() < 1e-12 && (fit.b.value - 0.5).abs() < 1e-12);
        let ex = points(|b| 0.2 * libm::exp(-0.01 * b));
        let fit = loss(&ex, Form::Exponential, 0.95).unwrap();
        assert!((fit.a.value - 0.2).abs() < 1e-12 && (fit.b.value - 0.01).abs() < 1e-12);
        assert!(fit.residual_squares < 1e-20);
    }

    #[test]
    fn the_fit_recovers_the_delay_slope() {
        let rate = Rate::from_mbit_per_second(50);
        let link = RouterLink::new(rate, Duration::from_millis(60), Bytes::new(1500), 1.0).unwrap();
        let f = delay_slope(&points(|_| 0.1), &link, 0.95).unwrap();
        assert!((f.value - 0.4).abs() < 1e-6, "{f:?}");
    }

    #[test]
    fn intervals_contain_the_true_values_and_widen_with_confidence() {
        // Alternating noise of +-5 %.
        let noisy = points(|b| {
            let sign = if (libm::log2(b / 10.0) as u32).is_multiple_of(2) { 1.05 } else { 0.95 };
            0.3 * libm::pow(b, -0.5) * sign
        });
        let (loose, strict) = (
            loss(&noisy, Form::PowerLaw, 0.5).unwrap(),
            loss(&noisy, Form::PowerLaw, 0.99).unwrap(),
        );
        assert!(strict.b.low < 0.5 && 0.5 < strict.b.high);
        assert!(strict.a.low < 0.3 && 0.3 < strict.a.high);
        assert!(strict.b.high - strict.b.low > loose.b.high - loose.b.low);
    }

    #[test]
    fn lossless_points_are_excluded_from_the_fit() {
        let mut some = points(|b| 0.3 * libm::pow(b, -0.5));
        some[5].loss = Probability::ZERO;
        assert_eq!(loss(&some, Form::PowerLaw, 0.95).unwrap().points, 5);
        let none: Vec<LossPoint> = points(|_| 0.0);
        let e = loss(&none, Form::PowerLaw, 0.95).unwrap_err();
        assert_eq!(
            e.to_string(),
            "a fit of a loss form needs at least 3 usable measurements, and there are none"
        );
    }

    #[test]
    fn loss_that_rises_with_the_buffer_is_rejected() {
        assert!(loss(&points(|b| b / 1000.0), Form::PowerLaw, 0.95).is_err());
        assert!(loss(&points(|_| 0.1), Form::PowerLaw, 1.0).is_err());
    }
}
