use core::fmt;
use core::str::FromStr;

use sweetspot_theory::reno::bounded::LossResponse;

use crate::AdviceError;

/// The sender's congestion control, as far as its response to loss is known in closed form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Congestion {
    /// Linux's default (RFC 9438).
    #[default]
    Cubic,
    /// RFC 5681.
    Reno,
}

impl Congestion {
    pub(super) fn response(self) -> LossResponse {
        match self {
            Congestion::Cubic => LossResponse::Cubic,
            Congestion::Reno => LossResponse::Reno,
        }
    }

    pub(super) fn standard(self) -> &'static str {
        match self {
            Congestion::Cubic => "RFC 9438",
            Congestion::Reno => "RFC 5681",
        }
    }
}

impl FromStr for Congestion {
    type Err = AdviceError;

    fn from_str(text: &str) -> Result<Congestion, AdviceError> {
        match text {
            "cubic" => Ok(Congestion::Cubic),
            "reno" => Ok(Congestion::Reno),
            _ => Err(AdviceError::NotThat {
                given: text.to_owned(),
                wanted: "a congestion control whose response to loss is known",
                example: "cubic or reno",
            }),
        }
    }
}

impl fmt::Display for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Congestion::Cubic => "cubic",
            Congestion::Reno => "reno",
        })
    }
}
