use sweetspot_theory::TheoryError;
use sweetspot_units::{Bytes, UnitError};
use thiserror::Error;

/// The reason why no advice is possible. The message names the argument, the reason and a valid value.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum AdviceError {
    /// An impossible quantity.
    #[error("{what} {given} is impossible: {why}")]
    Impossible {
        /// The argument.
        what: &'static str,
        /// Its value.
        given: String,
        /// The reason, and the values allowed.
        why: &'static str,
    },
    /// The path, with its buffer, holds too few packets for any window to matter.
    #[error(
        "no window makes this path faster, as with its buffer it holds {held}, fewer than four packets"
    )]
    NoWindowHelps {
        /// C T + B.
        held: Bytes,
    },
    /// A text that cannot be parsed.
    #[error("\"{given}\" is not {wanted}; write it like {example}")]
    NotThat {
        /// The text.
        given: String,
        /// The expected form.
        wanted: &'static str,
        /// An example of a correct text.
        example: &'static str,
    },
    /// A line of a file that cannot be read.
    #[error("line {line} of the {file} file, \"{given}\": {why}")]
    Line {
        /// The file.
        file: &'static str,
        /// The line's number, counted from 1.
        line: usize,
        /// The text of the line.
        given: String,
        /// The fault.
        why: String,
    },
    /// A quantity with a wrong unit or number.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// A formula does not hold for the arguments.
    #[error(transparent)]
    Theory(#[from] TheoryError),
}

/// `Ok` if `is` holds.
pub(crate) fn possible(
    holds: bool,
    what: &'static str,
    given: impl core::fmt::Display,
    why: &'static str,
) -> Result<(), AdviceError> {
    if holds {
        return Ok(());
    }
    Err(AdviceError::Impossible { what, given: given.to_string(), why })
}
