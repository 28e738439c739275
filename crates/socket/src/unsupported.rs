//! Systems other than Linux: the library does not size windows, and [`SizedSocket::attach`] returns
//! an error.

use std::convert::Infallible;

use crate::error::{AttachError, SocketError};
use crate::options::Options;
use crate::report::Report;

/// A sized socket, which cannot exist on this system.
#[derive(Debug)]
pub struct SizedSocket(Infallible);

impl SizedSocket {
    /// Returns [`AttachError::Unsupported`].
    pub fn attach<S: ?Sized>(_socket: &S, _options: Options) -> Result<SizedSocket, AttachError> {
        Err(AttachError::Unsupported)
    }

    /// Never called, because no such value exists.
    pub fn report(&self) -> Result<Report, SocketError> {
        match self.0 {}
    }

    /// Never called, because no such value exists.
    pub fn detach(self) -> Result<(), SocketError> {
        match self.0 {}
    }
}
