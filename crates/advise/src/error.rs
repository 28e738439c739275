use sweetspot_theory::TheoryError;
use sweetspot_units::{Bytes, UnitError};
use thiserror::Error;

/// The reason why no advice is possible. The message names the argument, the reason and a valid value.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum AdviceError {
    /// An impossible quantity.
    #[error("{what} {given} is impossible: {why}")]
    Impossible {
        /// The name of the argument.
        what: &'static str,
        /// The value given.
        given: String,
        /// The reason, and the allowed values.
        why: &'static str,
    },
    /// TCP's initial window already fills or overflows the path, and no smaller window is recommended.
    #[error(
        "no window makes a transfer on this path faster: {room} is {}, less than the ten packets ({initial}) with which \
         TCP begins (RFC 6928)",
        printed(*holds)
    )]
    NoWindowHelps {
        /// The name of the limit: C T, or the largest window that overflows nothing.
        room: &'static str,
        /// The size of this limit.
        holds: Bytes,
        /// The initial window.
        initial: Bytes,
    },
    /// A text that cannot be parsed.
    #[error("\"{given}\" is not {wanted}; write it like {example}")]
    NotThat {
        /// The text.
        given: String,
        /// The expected format.
        wanted: &'static str,
        /// An example of a valid text.
        example: &'static str,
    },
    /// A file of transfer sizes that has none.
    #[error("the file has no transfer sizes; write one per line, such as 80kB")]
    NoSizes,
    /// A line of a file that cannot be read.
    #[error("line {line} of the {file} file, \"{given}\": {why}")]
    Line {
        /// The kind of file.
        file: &'static str,
        /// The line's number, counted from 1.
        line: usize,
        /// The text of the line.
        given: String,
        /// The error in this line.
        why: String,
    },
    /// A quantity with a wrong unit or number.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// A formula does not hold for the arguments.
    #[error(transparent)]
    Theory(#[from] TheoryError),
}

/// Formats `bytes`, rounded down.
fn printed(bytes: Bytes) -> String {
    if bytes == Bytes::ZERO { "less than 1 B".to_owned() } else { bytes.to_string() }
}

/// Returns `Ok` if `holds`, otherwise the error `Impossible`.
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
