use std::io;

use sweetspot_linux::live::BorrowError;
use thiserror::Error;

/// Connections that cannot be tuned, though they should be.
#[derive(Debug, Error)]
pub enum Untunable {
    /// Those of one process.
    #[error("{0}")]
    Process(#[from] BorrowError),
    /// Those of processes that may not be looked into.
    #[error(
        "no permission for the sockets of {processes} processes: their downloads are left alone (run \
         as root, or with CAP_SYS_PTRACE like packaging/sweetspot-tune.service)"
    )]
    Processes {
        /// How many there are.
        processes: usize,
    },
}

/// Why tuning cannot begin or go on.
#[derive(Debug, Error)]
pub enum TuneError {
    /// A process to be tuned is out of reach.
    #[error("cannot tune: {0}")]
    Process(#[from] BorrowError),
    /// No such process.
    #[error("there is no process {pid}; ps -e lists those that there are")]
    NoProcess {
        /// Its number.
        pid: u32,
    },
    /// The table of connections cannot be read.
    #[error(
        "cannot list this host's connections: {source}; the kernel needs CONFIG_INET_DIAG \
         (modprobe tcp_diag)"
    )]
    Connections {
        /// The kernel's reason.
        source: io::Error,
    },
    /// A step failed for another reason.
    #[error("{step}: {source}")]
    Failed {
        /// What failed.
        step: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
}

impl TuneError {
    /// For `map_err`: what failed.
    pub fn at(step: &'static str) -> impl FnOnce(io::Error) -> TuneError {
        move |source| TuneError::Failed { step, source }
    }
}
