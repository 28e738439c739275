use std::io;

use thiserror::Error;

/// The reason why the connections of a network namespace cannot be listed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// The namespace cannot be opened.
    #[error(
        "cannot open the network namespace {namespace}: {source}; ip netns list has their names"
    )]
    Open {
        /// The namespace's name.
        namespace: String,
        /// The system's error.
        source: io::Error,
    },
    /// The namespace cannot be entered.
    #[error(
        "cannot enter the network namespace {namespace}: {source}; that needs CAP_SYS_ADMIN (run as root)"
    )]
    Enter {
        /// The namespace's name, or the process that it belongs to.
        namespace: String,
        /// The system's error.
        source: io::Error,
    },
    /// The namespace of this process cannot be opened.
    #[error("{0}")]
    Own(#[source] io::Error),
    /// The kernel has no interface to list connections.
    #[error("this kernel cannot list TCP connections: it lacks inet_diag (modprobe tcp_diag)")]
    NoDiag,
    /// The list of connections cannot be read.
    #[error("cannot list TCP connections (sock_diag): {source}")]
    List {
        /// The system's error.
        source: io::Error,
    },
}

impl HostError {
    /// The reason why the list cannot be read, from the system's error `source`.
    pub(crate) fn listing(source: io::Error) -> HostError {
        match source.kind() {
            io::ErrorKind::NotFound => HostError::NoDiag,
            _ => HostError::List { source },
        }
    }
}
