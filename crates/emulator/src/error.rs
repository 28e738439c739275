use std::io;

use thiserror::Error;

/// The most pairs of hosts on one path.
pub const MAX_HOST_PAIRS: usize = 1000;

pub(crate) type Result<T> = std::result::Result<T, EmulatorError>;

/// Why an emulation did not start or did not go on.
#[derive(Debug, Error)]
pub enum EmulatorError {
    /// The kernel refused a part of the network.
    #[error("emulator: cannot {what}: {source}")]
    Network {
        /// The step that failed.
        what: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// There are more pairs of hosts than addresses. Holds their number.
    #[error("emulator: {0} pairs of hosts exceed the {MAX_HOST_PAIRS} that a path can have")]
    TooManyHostPairs(usize),
    /// A path without a hop.
    #[error("emulator: the path has no hop; give one or more")]
    NoHop,
    /// The real-time loop failed.
    #[error("emulator: the loop that carries the packets failed: {0}")]
    Loop(io::Error),
    /// A command could not be started.
    #[error("emulator: cannot run \"{program}\": {source}; is it installed and in PATH?")]
    Command {
        /// The program's name.
        program: String,
        /// The kernel's reason.
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
