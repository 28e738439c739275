use std::io;

use sweetspot_emulator::{EmulatorError, IsolationError};
use thiserror::Error;

/// Why an experiment has no result.
#[derive(Debug, Error)]
pub enum LabError {
    /// There are no namespaces to run it in.
    #[error("lab: {0}")]
    Isolation(#[from] IsolationError),
    /// The path could not be emulated.
    #[error("lab: {0}")]
    Emulator(#[from] EmulatorError),
    /// The kernel refused something.
    #[error("lab: cannot {what}: {source}")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// Its reason.
        source: io::Error,
    },
    /// This machine cannot play the scenario truthfully; why, and what it could.
    #[error("lab: {0}")]
    Refused(String),
    /// What went wrong in the isolated process, in its own words.
    #[error("{0}")]
    Inside(String),
}

/// Says what was being done when an [`io::Error`] came.
pub(crate) trait Doing<T> {
    fn doing(self, what: &'static str) -> Result<T, LabError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: &'static str) -> Result<T, LabError> {
        self.map_err(|source| LabError::System { what, source })
    }
}
