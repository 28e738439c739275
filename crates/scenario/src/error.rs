use core::fmt;

use thiserror::Error;

/// Where in a scenario something was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceLocation {
    /// A line of the file, counted from 1.
    Line(usize),
    /// An override, which has no place but the key itself.
    Override,
}

/// What goes before a message: `line 5: `.
impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceLocation::Line(n) => write!(f, "line {n}: "),
            SourceLocation::Override => Ok(()),
        }
    }
}

/// Why a text is no scenario. Every message names the key, where it stands and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// Not TOML at all.
    #[error("{origin}{message}")]
    Syntax {
        /// Where the reader gave up.
        origin: SourceLocation,
        /// What it had expected.
        message: String,
    },
    /// A key that means nothing there.
    #[error("{origin}unknown key {key}{nearest}; {table} knows {allowed}")]
    UnknownKey {
        /// Where it stands.
        origin: SourceLocation,
        /// The key with the table it is in.
        key: String,
        /// The table.
        table: String,
        /// The nearest right one, as a question; empty where none is near.
        nearest: String,
        /// The keys that the table knows.
        allowed: String,
    },
    /// A key that must be there is not.
    #[error("{origin}{key} is missing{meant}; write it like {example}")]
    Missing {
        /// Where its table begins.
        origin: SourceLocation,
        /// The key with the table it belongs to.
        key: String,
        /// What was probably meant for it, as a question; empty where nothing is near.
        meant: String,
        /// A value that would do.
        example: &'static str,
    },
    /// A value that cannot be.
    #[error("{origin}{key} = {given}: {reason}")]
    Value {
        /// Where it stands.
        origin: SourceLocation,
        /// The key with the table it is in.
        key: String,
        /// The value as written.
        given: String,
        /// What is wrong with it and what is allowed.
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
