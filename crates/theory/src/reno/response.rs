//! The response of a congestion control to a loss.

use core::fmt;
use core::str::FromStr;

use sweetspot_units::Duration;

use crate::{Result, TheoryError};

/// CUBIC's growth constant in segments per second cubed, and the share of the window that remains after a loss (RFC
/// 9438, section 5).
pub(super) const CUBIC_C: f64 = 0.4;
pub(crate) const CUBIC_BETA: f64 = 0.7;

/// The congestion controls with a loss response in closed form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LossResponse {
    /// RFC 5681.
    Reno,
    /// Linux's default: RFC 9438, with fast convergence.
    #[default]
    Cubic,
}

impl FromStr for LossResponse {
    type Err = TheoryError;

    fn from_str(text: &str) -> Result<LossResponse> {
        match text {
            "cubic" => Ok(LossResponse::Cubic),
            "reno" => Ok(LossResponse::Reno),
            _ => Err(TheoryError::OutOfDomain {
                quantity: "congestion control",
                given: text.to_owned(),
                wanted: "expected cubic or reno, whose response to loss is known (BBR keeps up to 2 x rate x RTT in flight)",
            }),
        }
    }
}

impl fmt::Display for LossResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LossResponse::Cubic => "cubic",
            LossResponse::Reno => "reno",
        })
    }
}

impl LossResponse {
    /// The document that defines it.
    pub const fn standard(self) -> &'static str {
        match self {
            LossResponse::Cubic => "RFC 9438",
            LossResponse::Reno => "RFC 5681",
        }
    }

    /// The time from a loss until the window is `packets` again: RFC 9438, section 4.2, or a packet per RTT (RFC 5681).
    pub fn recovery(self, packets: f64, rtt: Duration) -> Duration {
        let lost = (1.0 - self.kept()) * packets;
        let linear = rtt.scaled(lost / self.linear());
        match self {
            LossResponse::Reno => linear,
            LossResponse::Cubic => Duration::from_secs_f64(libm::cbrt(lost / CUBIC_C)).min(linear),
        }
    }

    /// The share of the window that remains after a loss: RFC 9438, section 4.6, or half (RFC 5681).
    pub fn kept(self) -> f64 {
        if self == LossResponse::Reno { 0.5 } else { CUBIC_BETA }
    }

    /// Growth in packets per RTT of the linear phase, with which CUBIC has Reno's mean window (RFC 9438, section 4.3).
    pub(super) fn linear(self) -> f64 {
        3.0 * (1.0 - self.kept()) / (1.0 + self.kept())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_recovers_along_a_cubic_or_a_line() {
        // 0.3 x 1000 packets: cbrt(300 / 0.4) = 9.086 s; at 10 ms per RTT, 3 x 0.3 / 1.7 = 0.529 packets each: 5.67 s.
        let cubic = |ms| LossResponse::Cubic.recovery(1000.0, Duration::from_millis(ms));
        assert!((cubic(100).as_secs_f64() - 9.086).abs() < 1e-3);
        assert!((cubic(10).as_secs_f64() - 5.667).abs() < 1e-3);
        // 500 round trips of 10 ms.
        let reno = LossResponse::Reno.recovery(1000.0, Duration::from_millis(10));
        assert!((reno.as_secs_f64() - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_printed_response_parses_back_unchanged() {
        for response in [LossResponse::Reno, LossResponse::Cubic] {
            assert_eq!(response.to_string().parse(), Ok(response));
        }
        let refused = "vegas".parse::<LossResponse>().unwrap_err().to_string();
        assert!(refused.contains("vegas") && refused.contains("cubic or reno"), "{refused}");
    }
}
