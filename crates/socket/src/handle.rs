use std::fmt;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use crate::error::{AttachError, SocketError};
use crate::options::Options;
use crate::pool::Pool;
use crate::process_pool::of_process;
use crate::report::Report;

/// A socket of this program, sized until this value is dropped. Dropping it lifts every limit and restores the
/// program's own clamp and pacing rate.
///
/// The program keeps the socket itself, and may close it at any time, on any thread. Before a fork, drop this
/// value if the child will use the socket: nothing in the child would lift the limits.
///
/// ```
/// use std::net::{TcpListener, TcpStream};
/// use sweetspot_socket::{Options, SizedSocket};
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let stream = TcpStream::connect(listener.local_addr()?)?;
/// let sized = SizedSocket::attach(&stream, Options::default())?;
/// // The program reads as usual.
/// println!("{:?}", sized.report()?.limiting_factor);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SizedSocket {
    pool: Pool,
    cookie: u64,
    is_detached: bool,
}

impl SizedSocket {
    /// Starts sizing a TCP socket, which may still be connecting. One thread serves all sockets of the process.
    pub fn attach(socket: &impl AsFd, options: Options) -> Result<SizedSocket, AttachError> {
        of_process()?.attach(socket, options)
    }

    /// As [`SizedSocket::attach`], for bindings of other languages, which have a descriptor number.
    pub fn attach_descriptor(fd: RawFd, options: Options) -> Result<SizedSocket, AttachError> {
        of_process()?.attach_descriptor(fd, options)
    }

    /// The socket's state when it was last sampled.
    pub fn report(&self) -> Result<Report, SocketError> {
        self.pool.report(self.cookie)
    }

    /// Lifts every limit. Returns an error if the socket was already closed, and so had no limit.
    pub fn detach(mut self) -> Result<(), SocketError> {
        self.is_detached = true;
        self.pool.detach(self.cookie)
    }

    /// The socket's cookie (`SO_COOKIE`), unique until the next boot.
    pub fn cookie(&self) -> u64 {
        self.cookie
    }
}

impl Pool {
    /// Starts sizing a socket, which may still be connecting. The pool keeps no duplicate, so the program may
    /// close it at any time.
    pub fn attach(&self, socket: &impl AsFd, options: Options) -> Result<SizedSocket, AttachError> {
        self.attach_descriptor(socket.as_fd().as_raw_fd(), options)
    }

    /// As [`Pool::attach`], for bindings of other languages, which have a descriptor number.
    pub fn attach_descriptor(
        &self,
        fd: RawFd,
        options: Options,
    ) -> Result<SizedSocket, AttachError> {
        let cookie = self.add(fd, options)?;
        Ok(SizedSocket { pool: self.clone(), cookie, is_detached: false })
    }
}

impl Drop for SizedSocket {
    fn drop(&mut self) {
        if !self.is_detached {
            // A closed socket has no limits.
            let _ = self.pool.detach(self.cookie);
        }
    }
}

impl fmt::Debug for SizedSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SizedSocket").field("cookie", &self.cookie).finish_non_exhaustive()
    }
}
