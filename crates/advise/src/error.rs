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
    /// A quantity that no formula covers.
    #[error("{what} {given} is too small: {why}")]
    TooSmall {
        /// The quantity.
        what: &'static str,
        /// Its value.
        given: Bytes,
        /// The smallest value, and the advice instead.
        why: &'static str,
    },
    /// TCP's initial window already fills or overflows the path, and no window to recommend is smaller.
    #[error(
        "no window makes a transfer on this path faster: {room} is {}, less than the ten packets ({initial}) with which \
         TCP begins (RFC 6928)",
        whole(*holds)
    )]
    NoWindowHelps {
        /// C T, or the largest window that overflows nothing.
        room: &'static str,
        /// Its size.
        holds: Bytes,
        /// The initial window.
        initial: Bytes,
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
    /// A mix file without a size.
    #[error("the file has no transfer sizes; write one per line, such as 80kB")]
    NoSizes,
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

/// `bytes` that were rounded down.
fn whole(bytes: Bytes) -> String {
    if bytes == Bytes::ZERO { "less than 1 B".to_owned() } else { bytes.to_string() }
}

/// `Ok` if `holds`.
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
