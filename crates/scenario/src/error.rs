use core::fmt;

use thiserror::Error;

/// The place in a scenario at which a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceLocation {
    /// The whole file, for a key that is in no line.
    File,
    /// A line of the file, counted from 1.
    Line(usize),
    /// An override, which has no line.
    Override,
}

/// The prefix of a message: `line 5: `.
impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceLocation::Line(n) => write!(f, "line {n}: "),
            SourceLocation::File | SourceLocation::Override => Ok(()),
        }
    }
}

/// The result of parsing a scenario, or a part of one.
pub(crate) type Result<T, E = ScenarioError> = core::result::Result<T, E>;

/// Why a text is not a scenario. Every message gives the key, its line and the allowed values.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// The text is not TOML.
    #[error("{origin}{message}")]
    Syntax {
        /// The place at which parsing failed.
        origin: SourceLocation,
        /// The expected input.
        message: String,
    },
    /// An unknown key.
    #[error("{origin}unknown key {key}{nearest}; {table} knows {allowed}")]
    UnknownKey {
        /// The place of the key.
        origin: SourceLocation,
        /// The key, including its table.
        key: String,
        /// The table.
        table: String,
        /// The most similar valid key, as a question; empty if none is similar.
        nearest: String,
        /// The allowed keys of the table.
        allowed: String,
    },
    /// A required key is missing.
    #[error("{origin}{key} is missing{meant}; write it like {example}")]
    Missing {
        /// The start of its table.
        origin: SourceLocation,
        /// The key, including its table.
        key: String,
        /// A misspelled key that was probably meant, as a question; empty if none is similar.
        meant: String,
        /// An example of a value, and its place.
        example: String,
    },
    /// An invalid value.
    #[error("{origin}{key} = {given}: {reason}")]
    Value {
        /// The place of the value.
        origin: SourceLocation,
        /// The key, including its table.
        key: String,
        /// The value as written.
        given: String,
        /// The fault, and the allowed values.
        reason: String,
    },
    /// An override that is not `key=value`.
    #[error("{0}: write it like path.buffer=625pkt or transfer.0.sizing=sobas")]
    Override(String),
    /// An override of an entry that the scenario does not have.
    #[error("{key}: there is no such entry; the scenario has {entries} of them, numbered from 0")]
    NoEntry {
        /// The key.
        key: String,
        /// Number of entries in the list.
        entries: usize,
    },
}
