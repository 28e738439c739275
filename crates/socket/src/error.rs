use std::io;

use thiserror::Error;

/// The reason why a socket cannot be attached.
#[derive(Debug, Error)]
pub enum AttachError {
    /// The descriptor is closed.
    #[error("the descriptor is closed")]
    Closed,
    /// The descriptor is not a TCP socket.
    #[error("expected a TCP socket")]
    NotTcp,
    /// The socket is listening: attach the connections that it accepts.
    #[error("expected a connection, found a listener; attach the sockets that it accepts")]
    Listening,
    /// The socket is already attached to this pool.
    #[error("the socket is attached already")]
    AlreadyAttached,
    /// The pool was created before fork(2), by the parent process.
    #[error("the pool belongs to the parent process; attach to a pool made after fork")]
    Forked,
    /// The socket is not connected yet, so the addresses of its ends are unknown.
    #[error("the socket is not connected; invite its peer once it is")]
    NotConnected,
    /// The invitation has already been used for another socket.
    #[error("the invitation was used before; make or accept one for each connection")]
    UsedInvitation,
    /// The operating system has no interface for sizing windows.
    #[error("windows are sized on Linux alone; here the kernel sizes them")]
    Unsupported,
    /// A system call failed.
    #[error("the kernel refuses {call}: {source}")]
    System {
        /// The system call.
        call: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

/// The reason why an attached socket can no longer be accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SocketError {
    /// The program closed it, or the connection has ended.
    #[error("the socket is closed")]
    Closed,
    /// This process is a child of the process that attached it.
    #[error("the socket was attached by the parent process, before fork")]
    Forked,
}
