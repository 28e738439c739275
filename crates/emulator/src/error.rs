use std::io;

use thiserror::Error;

/// Maximum number of host pairs on a path.
pub const MAX_HOST_PAIRS: usize = 1000;

pub(crate) type Result<T> = std::result::Result<T, EmulatorError>;

/// The reason why an emulation failed.
#[derive(Debug, Error)]
pub enum EmulatorError {
    /// The kernel rejected a step of the network's setup.
    #[error("emulator: cannot {what}: {source}")]
    Network {
        /// The step that failed.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// There are more host pairs than addresses. Holds their number.
    #[error("emulator: {0} pairs of hosts exceed the {MAX_HOST_PAIRS} that a path can have")]
    TooManyHostPairs(usize),
    /// The path has no hop.
    #[error("emulator: the path has no hop; give one or more")]
    NoHop,
    /// The real-time loop failed.
    #[error("emulator: the loop that carries the packets failed: {0}")]
    Loop(io::Error),
    /// A command failed to start.
    #[error("emulator: cannot run \"{program}\": {source}; is it installed and in PATH?")]
    Command {
        /// The program's name.
        program: String,
        /// The system's error.
        source: io::Error,
    },
}

/// Adds the step that failed to an [`io::Error`].
pub(crate) trait NetworkContext<T> {
    fn doing(self, what: &'static str) -> Result<T>;
}

impl<T> NetworkContext<T> for io::Result<T> {
    fn doing(self, what: &'static str) -> Result<T> {
        self.map_err(|source| EmulatorError::Network { what, source })
    }
}
