//! The TLS handshake of a connection, and the errors of its socket.

use std::io;
use std::net::{SocketAddr, TcpStream};

use rustls::{Connection, InvalidMessage};
use sweetspot_linux::clock;
use sweetspot_units::{Duration, Time};

use crate::{Result, TransferError};

/// Completes the TLS handshake before `deadline`, even if the peer sends slowly.
pub(super) fn handshake(
    tls: &mut Connection,
    socket: &TcpStream,
    peer: SocketAddr,
    deadline: Time,
) -> Result<()> {
    let late = || TransferError::Tls {
        peer: peer.to_string(),
        reason: "it did not complete the handshake in time".into(),
    };
    let mut io = socket;
    let mut has_read = false;
    while tls.is_handshaking() || tls.wants_write() {
        let left = deadline.since(clock::now());
        if left == Duration::ZERO {
            return Err(late());
        }
        let map = |e: io::Error| match e {
            e if is_timeout(&e) => late(),
            e if is_disconnect(&e) => TransferError::Tls {
                peer: peer.to_string(),
                reason: format!("it hung up during the handshake ({e}); it may be busy, try again"),
            },
            e => TransferError::Tls { peer: peer.to_string(), reason: e.to_string() },
        };
        if tls.wants_write() {
            socket.set_write_timeout(Some(left.into())).map_err(map)?;
            unless_interrupted(tls.write_tls(&mut io)).map_err(map)?;
        } else {
            socket.set_read_timeout(Some(left.into())).map_err(map)?;
            let Some(length) = unless_interrupted(tls.read_tls(&mut io)).map_err(map)? else {
                continue;
            };
            if length == 0 {
                let reason = match has_read {
                    true => "it hung up during the handshake".into(),
                    false => "it closed the connection without sending data".into(),
                };
                return Err(TransferError::Tls { peer: peer.to_string(), reason });
            }
            has_read = true;
            tls.process_new_packets().map_err(|e| tls_error(peer, &e))?;
        }
    }
    Ok(())
}

/// `None` if the call was interrupted. The kernel does not restart a call with a timeout after SIGSTOP and SIGCONT, even without
/// a signal handler (signal(7)).
fn unless_interrupted(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        done => done.map(Some),
    }
}

/// Converts a TLS error of this peer.
pub(super) fn tls_error(peer: SocketAddr, error: &rustls::Error) -> TransferError {
    let peer = peer.to_string();
    match error {
        rustls::Error::InvalidCertificate(_) => TransferError::CertificateMismatch(peer),
        rustls::Error::AlertReceived(_) => {
            let reason = "the other end refused it; is the ticket from another listener?".into();
            TransferError::Tls { peer, reason }
        }
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            let reason =
                "it does not use TLS; is that program sweetspot, and is the port right?".into();
            TransferError::Tls { peer, reason }
        }
        _ => TransferError::Tls { peer, reason: error.to_string() },
    }
}

fn is_timeout(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Whether the error means that the connection has ended.
pub(super) fn is_disconnect(e: &io::Error) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, HostUnreachable, NetworkUnreachable,
        NotConnected, TimedOut, UnexpectedEof,
    };
    matches!(
        e.kind(),
        BrokenPipe
            | ConnectionAborted
            | ConnectionReset
            | HostUnreachable
            | NetworkUnreachable
            | NotConnected
            | TimedOut
            | UnexpectedEof
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_call_is_repeated_and_other_errors_remain() {
        let failed = |kind: io::ErrorKind| unless_interrupted(Err(kind.into()));
        assert_eq!(failed(io::ErrorKind::Interrupted).unwrap(), None);
        assert_eq!(
            failed(io::ErrorKind::WouldBlock).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        assert_eq!(unless_interrupted(Ok(0)).unwrap(), Some(0));
    }
}
