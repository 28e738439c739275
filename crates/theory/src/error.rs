use core::fmt::Display;

use sweetspot_units::Probability;
use thiserror::Error;

/// The result of a formula.
pub type Result<T, E = TheoryError> = core::result::Result<T, E>;

/// Why a formula gives no result. No function of this crate returns NaN or an invented value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TheoryError {
    /// An argument for which the formula does not hold.
    #[error("{quantity} {given} is outside what this formula covers: {wanted}")]
    OutOfDomain {
        /// The argument's name.
        quantity: &'static str,
        /// The value given, with its unit.
        given: String,
        /// The allowed values, and the reason.
        wanted: &'static str,
    },
    /// A fit from too few points.
    #[error("a fit of {fitted} needs at least {needed} usable measurements, and there {}", counted(*given))]
    TooFewPoints {
        /// The fitted quantity.
        fitted: &'static str,
        /// Number of usable points.
        given: usize,
        /// Number of points that the fit needs.
        needed: usize,
    },
    /// A case for which no closed form is known.
    #[error("no closed form covers this: {because}")]
    NotCovered {
        /// The reason.
        because: &'static str,
    },
}

/// The number of points in words that follow "there".
fn counted(points: usize) -> String {
    match points {
        0 => "are none".to_owned(),
        1 => "is 1".to_owned(),
        n => format!("are {n}"),
    }
}

/// `Ok` if the argument is in the formula's domain.
pub(crate) fn require(
    holds: bool,
    quantity: &'static str,
    given: impl Display,
    wanted: &'static str,
) -> Result<()> {
    if holds {
        return Ok(());
    }
    Err(TheoryError::OutOfDomain { quantity, given: given.to_string(), wanted })
}

/// A formula's result as a probability.
pub(crate) fn probability(quantity: &'static str, p: f64) -> Result<Probability> {
    Probability::new(p).ok_or_else(|| TheoryError::OutOfDomain {
        quantity,
        given: p.to_string(),
        wanted: "a probability, from 0 to 1",
    })
}
