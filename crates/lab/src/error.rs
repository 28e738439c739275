use std::io;

use sweetspot_emulator::{EmulatorError, IsolationError};
use thiserror::Error;

/// Why an experiment failed.
#[derive(Debug, Error)]
pub enum LabError {
    /// The namespaces could not be created.
    #[error("lab: {0}")]
    Isolation(#[from] IsolationError),
    /// The path could not be emulated.
    #[error("lab: {0}")]
    Emulator(#[from] EmulatorError),
    /// The kernel refused an operation.
    #[error("lab: cannot {what}: {source}")]
    System {
        /// The operation.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// This machine cannot run the scenario accurately; the text has the reason and a feasible
    /// alternative.
    #[error("lab: {0}")]
    Refused(String),
    /// The isolated process failed with this message.
    #[error("{0}")]
    Inside(String),
}

/// Adds the operation to an [`io::Error`].
pub trait Doing<T> {
    /// The result; its error says that the operation `what` failed.
    fn doing(self, what: &'static str) -> Result<T, LabError>;
}

impl<T> Doing<T> for io::Result<T> {
    /// The result; its error says that the operation `what` failed.
    fn doing(self, what: &'static str) -> Result<T, LabError> {
        self.map_err(|source| LabError::System { what, source })
    }
}
