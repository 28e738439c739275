use std::io;

use thiserror::Error;

use crate::MOST_LEAVES;

/// Why an emulation did not start or did not go on.
#[derive(Debug, Error)]
pub enum EmulatorError {
    /// The kernel refused a part of the network.
    #[error("emulator: cannot {what}: {source}")]
    Network {
        /// What was asked of it.
        what: &'static str,
        /// Its reason.
        source: io::Error,
    },
    /// More hosts than there are addresses for.
    #[error("emulator: {0} pairs of hosts are more than the {MOST_LEAVES} that a path takes")]
    TooManyLeaves(usize),
    /// The real-time loop failed.
    #[error("emulator: the loop that carries the packets failed: {0}")]
    Loop(io::Error),
    /// A command could not be started.
    #[error("emulator: cannot run \"{program}\": {source}; is it installed and in PATH?")]
    Command {
        /// Its name.
        program: String,
        /// The kernel's reason.
        source: io::Error,
    },
}

/// Says what was being done when an [`io::Error`] came.
pub(crate) trait Doing<T> {
    fn doing(self, what: &'static str) -> Result<T, EmulatorError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: &'static str) -> Result<T, EmulatorError> {
        self.map_err(|source| EmulatorError::Network { what, source })
    }
}
