use core::fmt;

use thiserror::Error;

/// Where in a scenario a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceLocation {
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
            SourceLocation::Override => Ok(()),
        }
    }
}

/// The result of reading a scenario, or a part of one.
pub(crate) type Result<T, E = ScenarioError> = core::result::Result<T, E>;

/// The reason why a text is not a scenario. Every message names the key, its line and the values allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// Not TOML at all.
    #[error("{origin}{message}")]
    Syntax {
        /// Where parsing failed.
        origin: SourceLocation,
        /// The expected input.
        message: String,
    },
    /// An unknown key.
    #[error("{origin}unknown key {key}{nearest}; {table} knows {allowed}")]
    UnknownKey {
        /// Where it stands.
        origin: SourceLocation,
        /// The key with the table it is in.
        key: String,
        /// The table.
        table: String,
        /// The most similar valid key, as a question; empty if none is similar.
        nearest: String,
        /// The keys allowed in the table.
        allowed: String,
    },
    /// A required key is missing.
    #[error("{origin}{key} is missing{meant}; write it like {example}")]
    Missing {
        /// Where its table begins.
        origin: SourceLocation,
        /// The key with the table it belongs to.
        key: String,
        /// A key that was probably meant for it, as a question; empty if none is similar.
        meant: String,
        /// An example of a value.
        example: &'static str,
    },
    /// An invalid value.
    #[error("{origin}{key} = {given}: {reason}")]
    Value {
        /// Where it stands.
        origin: SourceLocation,
        /// The key with the table it is in.
        key: String,
        /// The value as written.
        given: String,
        /// The fault, and the values allowed.
        reason: String,
    },
    /// An override that is not `key=value`.
    #[error("{0}: write it like path.buffer=625pkt or transfer.0.sizing=sobas")]
    Override(String),
    /// An override of an entry that the scenario does not have.
    #[error("{key}: there is no such entry; the scenario has {entries} there, counted from 0")]
    NoEntry {
        /// The key.
        key: String,
        /// How many entries the list has.
        entries: usize,
    },
}
