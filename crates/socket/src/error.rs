use std::io;

use thiserror::Error;

/// Why a socket cannot be attached.
#[derive(Debug, Error)]
pub enum AttachError {
    /// The descriptor is closed.
    #[error("the descriptor is closed")]
    Closed,
    /// The descriptor is not a TCP socket.
    #[error("expected a TCP socket")]
    NotTcp,
    /// The socket listens: attach the connections that it accepts.
    #[error("expected a connection, found a listener; attach the sockets that it accepts")]
    Listening,
    /// The socket is attached to this pool already.
    #[error("the socket is attached already")]
    AlreadyAttached,
    /// The pool was made before fork(2), by the parent process.
    #[error("the pool belongs to the parent process; attach to a pool made after fork")]
    Forked,
    /// The socket is not connected, so its ends have no addresses yet.
    #[error("the socket is not connected; invite its peer once it is")]
    NotConnected,
    /// An invitation was used for another socket before.
    #[error("the invitation was used before; make or accept one for each connection")]
    UsedInvitation,
    /// The system has no interface to size windows.
    #[error("windows are sized on Linux alone; here the kernel sizes them")]
    Unsupported,
    /// The kernel refuses.
    #[error("the kernel refuses {call}: {source}")]
    System {
        /// The call.
        call: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
}

/// Why a socket that was attached is out of reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SocketError {
    /// The program closed it, or the connection is over.
    #[error("the socket is closed")]
    Closed,
    /// This process is a child of the one that attached it.
    #[error("the socket was attached by the parent process, before fork")]
    Forked,
}
