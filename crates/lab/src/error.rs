use std::io;

use sweetspot_emulator::{EmulatorError, IsolationError};
use thiserror::Error;

/// Why an experiment failed.
#[derive(Debug, Error)]
pub enum LabError {
    /// Namespaces cannot be made.
    #[error("lab: {0}")]
    Isolation(#[from] IsolationError),
    /// The path could not be emulated.
    #[error("lab: {0}")]
    Emulator(#[from] EmulatorError),
    /// The kernel refused something.
    #[error("lab: cannot {what}: {source}")]
    System {
        /// The operation.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// This machine cannot run the scenario accurately; holds the reason and a feasible alternative.
    #[error("lab: {0}")]
    Refused(String),
    /// The isolated process failed; its message.
    #[error("{0}")]
    Inside(String),
}

/// Adds the operation to an [`io::Error`].
pub trait Doing<T> {
    /// The result; its error says that `what` could not be done.
    fn doing(self, what: &'static str) -> Result<T, LabError>;
}

impl<T> Doing<T> for io::Result<T> {
    /// The result; its error says that `what` could not be done.
    fn doing(self, what: &'static str) -> Result<T, LabError> {
        self.map_err(|source| LabError::System { what, source })
    }
}
