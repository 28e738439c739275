use std::io;

use thiserror::Error;

/// Why the connections of a network namespace cannot be listed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// The namespace cannot be opened.
    #[error(
        "cannot open the network namespace {namespace}: {source}; ip netns list has their names"
    )]
    Open {
        /// Its name.
        namespace: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The namespace cannot be entered.
    #[error(
        "cannot enter the network namespace {namespace}: {source}; that needs CAP_SYS_ADMIN (run as root)"
    )]
    Enter {
        /// Its name, or the process that it belongs to.
        namespace: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The namespace of this process cannot be opened.
    #[error("{0}")]
    Own(#[source] io::Error),
    /// The kernel has no list of connections.
    #[error("this kernel cannot list TCP connections: it lacks inet_diag (modprobe tcp_diag)")]
    NoDiag,
    /// The list of connections cannot be read.
    #[error("cannot list TCP connections (sock_diag): {source}")]
    List {
        /// The kernel's reason.
        source: io::Error,
    },
}

impl HostError {
    /// Why the list cannot be read, for the kernel's reason `source`.
    pub(crate) fn listing(source: io::Error) -> HostError {
        match source.kind() {
            io::ErrorKind::NotFound => HostError::NoDiag,
            _ => HostError::List { source },
        }
    }
}
