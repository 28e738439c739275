use std::io;
use std::os::fd::RawFd;

use sweetspot_linux::diag::TcpState;
use sweetspot_linux::live::{LostSocket, OwnSocket};
use sweetspot_linux::tcp::{Info, options};

use crate::error::AttachError;

/// The socket behind a descriptor, if it is a TCP connection.
pub(crate) fn connection_at(fd: RawFd) -> Result<OwnSocket, AttachError> {
    let failed = |source: io::Error| match source.raw_os_error() {
        Some(EBADF) => AttachError::Closed,
        Some(ENOTSOCK) => AttachError::NotTcp,
        _ => AttachError::System { call: "SO_COOKIE", source },
    };
    let socket = OwnSocket::at(fd).map_err(failed)?;
    let state = socket.with(|fd| {
        let is_tcp = options::is_tcp(fd)?;
        is_tcp.then(|| Info::read(fd).map(|info| TcpState::from_number(info.state))).transpose()
    });
    match state {
        Ok(Ok(Some(Some(TcpState::Listen)))) => Err(AttachError::Listening),
        Ok(Ok(Some(_))) => Ok(socket),
        Ok(Ok(None)) => Err(AttachError::NotTcp),
        Ok(Err(source)) => Err(AttachError::System { call: "TCP_INFO", source }),
        Err(LostSocket::Failed(source)) => Err(AttachError::System { call: "fcntl", source }),
        // Another thread has just closed it.
        Err(_) => Err(AttachError::Closed),
    }
}

/// Linux error numbers, the same on all its architectures.
const EBADF: i32 = 9;
const ENOTSOCK: i32 = 88;
