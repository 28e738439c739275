use sweetspot_theory::TheoryError;
use sweetspot_units::UnitError;
use thiserror::Error;

/// Why there is no advice. The message names the argument, the reason and what to write instead.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum AdviceError {
    /// A quantity that is impossible.
    #[error("{what} {given} is impossible: {why}")]
    Impossible {
        /// The argument.
        what: &'static str,
        /// Its value.
        given: String,
        /// Why, and what is allowed.
        why: &'static str,
    },
    /// A text that is not what it should be.
    #[error("\"{given}\" is not {wanted}; write it like {example}")]
    NotThat {
        /// The text.
        given: String,
        /// What was expected.
        wanted: &'static str,
        /// How to write it.
        example: &'static str,
    },
    /// A line of a file that cannot be read.
    #[error("line {line} of the {file} file, \"{given}\": {why}")]
    Line {
        /// Which file.
        file: &'static str,
        /// Its line, from 1.
        line: usize,
        /// The line.
        given: String,
        /// What is wrong with it.
        why: String,
    },
    /// A quantity with a wrong unit or number.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// No formula answers.
    #[error(transparent)]
    Theory(#[from] TheoryError),
}

/// `Ok` if the argument is possible.
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
