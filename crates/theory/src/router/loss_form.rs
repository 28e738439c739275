//! Loss as a function of the buffer: the PL form and the EX form, router-buffer eqs (8) and (14).

use sweetspot_units::Probability;

use super::capacity_ratio::Form;
use crate::error::require;
use crate::packets::Packets;
use crate::{Result, TheoryError};

/// A loss form with its parameters. Buffers are counted in packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossForm {
    form: Form,
    a: f64,
    b: f64,
    smallest_buffer: Packets,
}

impl LossForm {
    /// p(B) = a B^-b.
    ///
    /// # Errors
    /// If `a` or `b` is not a finite number above zero, or if no finite buffer brings the loss
    /// below 1.
    pub fn power_law(a: f64, b: f64) -> Result<LossForm> {
        LossForm::new(Form::PowerLaw, a, b)
    }

    /// p(B) = a e^(-bB).
    ///
    /// # Errors
    /// If `a` or `b` is not a finite number above zero, or `a`, the loss without a buffer,
    /// exceeds 1.
    pub fn exponential(a: f64, b: f64) -> Result<LossForm> {
        LossForm::new(Form::Exponential, a, b)
    }

    /// The given form with its parameters.
    ///
    /// # Errors
    /// As for [`LossForm::power_law`] and [`LossForm::exponential`].
    pub fn new(form: Form, a: f64, b: f64) -> Result<LossForm> {
        require(a.is_finite() && a > 0.0, "a", a, "a finite number above zero")?;
        require(b.is_finite() && b > 0.0, "b", b, "a finite number above zero")?;
        if form == Form::Exponential {
            require(a <= 1.0, "a", a, "at most 1: it is the loss without a buffer")?;
        }
        let smallest_buffer = match form {
            Form::PowerLaw => Packets::new(libm::pow(a, 1.0 / b))?,
            Form::Exponential => Packets::ZERO,
        };
        Ok(LossForm { form, a, b, smallest_buffer })
    }

    /// The form: power law or exponential.
    pub fn form(&self) -> Form {
        self.form
    }

    /// The factor a.
    pub fn a(&self) -> f64 {
        self.a
    }

    /// The decay b.
    pub fn b(&self) -> f64 {
        self.b
    }

    // Router-buffer eqs (8), (14).
    /// The loss with `buffer`.
    ///
    /// # Errors
    /// If the form gives more than 1, as a power law does below [`LossForm::smallest_buffer`].
    pub fn loss(&self, buffer: Packets) -> Result<Probability> {
        let p = self.raw(buffer.get());
        let wanted = "large enough that the power law gives a loss of 1 or less";
        Probability::new(p).ok_or_else(|| TheoryError::OutOfDomain {
            quantity: "buffer",
            given: buffer.to_string(),
            wanted,
        })
    }

    /// The buffer at which the form gives a loss of 1. The form does not hold below it.
    pub fn smallest_buffer(&self) -> Packets {
        self.smallest_buffer
    }

    /// The form's value, which may exceed 1.
    pub(crate) fn raw(&self, buffer: f64) -> f64 {
        match self.form {
            Form::PowerLaw => self.a * libm::pow(buffer, -self.b),
            Form::Exponential => self.a * libm::exp(-self.b * buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(n: f64) -> Packets {
        Packets::new(n).unwrap()
    }

    #[test]
    fn both_forms_match_a_hand_calculation() {
        // 0.5 * 100^-0.5 = 0.05; 0.1 * e^-(0.02 * 50) = 0.0367879.
        let pl = LossForm::power_law(0.5, 0.5).unwrap();
        assert!((pl.loss(packets(100.0)).unwrap().get() - 0.05).abs() < 1e-15);
        let ex = LossForm::exponential(0.1, 0.02).unwrap();
        assert!((ex.loss(packets(50.0)).unwrap().get() - 0.036_787_944).abs() < 1e-9);
    }

    #[test]
    fn power_laws_are_linear_in_log_log_and_exponentials_in_lin_log() {
        let pl = LossForm::power_law(0.5, 0.7).unwrap();
        let ex = LossForm::exponential(0.5, 0.01).unwrap();
        let slope = |p: &LossForm, x: f64, y: f64, dx: f64| {
            (libm::log(p.raw(y)) - libm::log(p.raw(x))) / dx
        };
        assert!((slope(&pl, 10.0, 1000.0, libm::log(100.0)) + 0.7).abs() < 1e-12);
        assert!((slope(&ex, 10.0, 1000.0, 990.0) + 0.01).abs() < 1e-12);
    }

    #[test]
    fn a_power_law_is_undefined_below_its_smallest_buffer() {
        let pl = LossForm::power_law(4.0, 0.5).unwrap();
        assert_eq!(pl.smallest_buffer(), packets(16.0));
        assert!(pl.loss(packets(15.9)).is_err());
        assert!(pl.loss(Packets::ZERO).is_err());
        assert!(pl.loss(packets(16.1)).is_ok());
    }

    #[test]
    fn impossible_parameters_are_rejected() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(LossForm::power_law(bad, 1.0).is_err());
            assert!(LossForm::exponential(0.5, bad).is_err());
        }
        assert!(LossForm::exponential(1.1, 1.0).is_err());
    }
}
