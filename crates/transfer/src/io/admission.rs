//! Admission: from an accepted TCP connection to a peer that proved its ticket.

use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;

use sweetspot_linux::clock;
use sweetspot_linux::event_fd::{is_readable, wait_readable};
use sweetspot_protocol::{Hello, Message, ProtocolError, Role, Secret, VERSION};
use sweetspot_units::{Duration, Time};

use super::channel::{Channel, PEER_TIMEOUT};
use super::identity::Identity;
use super::link::{FrameReader, Link};
use crate::TransferError;

/// The time in which a connection must say something.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(3);
/// The time in which a connection must prove the ticket.
const ADMISSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Whom a server admits.
pub(crate) struct Admission {
    pub identity: Identity,
    pub secret: Secret,
    /// When the ticket expires, on the wall clock.
    pub expires: Time,
    /// What this end does.
    pub role: Role,
}

impl Admission {
    /// Admits the peer behind `socket`, or refuses it. The peer and the caller learn why.
    pub fn admit(&self, socket: TcpStream) -> Result<(Link, Hello), TransferError> {
        let deadline = clock::now() + ADMISSION_TIMEOUT;
        let peer = socket.peer_addr().map_err(TransferError::system("asking for the peer"))?;
        let first = clock::now() + FIRST_BYTE_TIMEOUT;
        // Before anything is set up for it: who says nothing costs little.
        let waited = wait_readable(&[socket.as_fd()], first);
        if waited.is_err() || !is_readable(socket.as_fd()) {
            let patience = FIRST_BYTE_TIMEOUT;
            return Err(TransferError::Silent { peer: peer.to_string(), patience });
        }
        let channel = Arc::new(Channel::accept(socket, &self.identity, deadline)?);
        let session = channel.session(&self.secret)?;
        let mut frames = FrameReader::new(Arc::clone(&channel));
        let judged = frames.opening_message(deadline).and_then(|message| match message {
            Message::Hello(hello) => Ok(hello),
            Message::Failed { reason } => Err(TransferError::PeerFailed(reason)),
            other => {
                let (what, when) = (other.kind(), "before a hello");
                Err(ProtocolError::OutOfOrder { what, when }.into())
            }
        });
        let judged = judged.and_then(|hello| {
            let peer = channel.peer().to_string();
            if hello.version != VERSION {
                return Err(TransferError::Version { peer, theirs: hello.version });
            }
            if !session.is_dialer_proof(&hello.proof) {
                return Err(TransferError::WrongTicket(peer));
            }
            // After the proof: only who held the ticket learns that it has expired.
            if clock::wall() >= self.expires {
                return Err(TransferError::Expired(peer));
            }
            if hello.role == self.role && !hello.measures {
                let what = if self.role == Role::Sender { "send" } else { "receive" };
                return Err(TransferError::SameRole(peer, what));
            }
            Ok(hello)
        });
        match judged {
            Ok(hello) => {
                channel.say(&Message::Welcome { proof: session.listener_proof() })?;
                Ok((Link { channel, session, frames }, hello))
            }
            Err(error) => {
                let error = match error {
                    TransferError::Silent { peer, .. } if clock::now() >= deadline => {
                        TransferError::Silent { peer, patience: ADMISSION_TIMEOUT }
                    }
                    other => other,
                };
                channel.hang_up(&Message::Refuse { reason: refusal(&error) });
                Err(error)
            }
        }
    }
}

/// The reason sent to an unauthenticated peer: its next step, and nothing about this host.
fn refusal(error: &TransferError) -> String {
    match error {
        TransferError::WrongTicket(_) => {
            "the ticket's secret is wrong; copy the whole line that the running `sweetspot serve` printed"
        }
        TransferError::Expired(_) => "the ticket has expired; ask for a new one",
        TransferError::Version { .. } => {
            "the versions differ; use the same version of sweetspot on both ends"
        }
        TransferError::SameRole(_, "send") => "this end sends; use `sweetspot receive` with its ticket",
        TransferError::SameRole(..) => "this end receives; use `sweetspot send` with its ticket",
        _ => "the handshake was not understood",
    }
    .to_owned()
}

const _: () = assert!(ADMISSION_TIMEOUT.as_nanos() < PEER_TIMEOUT.as_nanos());
