//! Admission: from an accepted TCP connection to a peer that proved its ticket.

use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustls::ServerConfig;
use sweetspot_linux::clock;
use sweetspot_linux::event_fd::{is_readable, wait_readable};
use sweetspot_protocol::clients::Client;
use sweetspot_protocol::{Hello, Message, ProtocolError, Role, Secret, Session, VERSION};
use sweetspot_units::{Duration, Time};

use super::channel::{Channel, PEER_TIMEOUT};
use super::client_table::{ClientTable, has_expired};
use super::link::{FrameReader, Link};
use super::spoken;
use crate::TransferError;

/// The time in which a connection must say something.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(3);
/// The time in which a connection must prove the ticket.
const ADMISSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Whom a server admits.
pub(crate) struct Admission {
    pub config: Arc<ServerConfig>,
    pub clients: ClientTable,
    /// What this end does; `None`: either, by the rights of who comes.
    pub role: Option<Role>,
}

/// Somebody who was admitted.
pub(crate) struct Admitted {
    pub link: Link,
    pub hello: Hello,
    pub client: Arc<Client>,
}

impl Admission {
    /// Admits the peer behind `socket`, or refuses it. The peer and the caller learn why.
    pub fn admit(&self, socket: TcpStream) -> Result<Admitted, TransferError> {
        let deadline = clock::now() + ADMISSION_TIMEOUT;
        let peer = socket.peer_addr().map_err(TransferError::system("asking for the peer"))?;
        let first = clock::now() + FIRST_BYTE_TIMEOUT;
        // Before anything is set up for it: who says nothing costs little.
        let waited = wait_readable(&[socket.as_fd()], first);
        if waited.is_err() || !is_readable(socket.as_fd()) {
            let patience = FIRST_BYTE_TIMEOUT;
            return Err(TransferError::Silent { peer: peer.to_string(), patience });
        }
        let channel = Arc::new(Channel::accept(socket, &self.config, deadline)?);
        let mut frames = FrameReader::new(Arc::clone(&channel));
        match self.judge(&channel, &mut frames, deadline) {
            Ok((session, hello, client)) => {
                channel.say(&Message::Welcome { proof: session.listener_proof() })?;
                Ok(Admitted { link: Link { channel, session, frames }, hello, client })
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

    fn judge(
        &self,
        channel: &Channel,
        frames: &mut FrameReader,
        deadline: Time,
    ) -> Result<(Session, Hello, Arc<Client>), TransferError> {
        let peer = channel.peer().to_string();
        let mut message = frames.opening_message(deadline)?;
        let mut told = None;
        if let Message::Pake { code, element } = &message {
            let (client, code) =
                self.clients.code(*code)?.ok_or_else(|| TransferError::NoCode(peer.clone()))?;
            told = Some((client, spoken::answer(&code, channel, element)?));
            message = frames.opening_message(deadline)?;
        }
        let hello = match message {
            Message::Hello(hello) => hello,
            Message::Failed { reason } => return Err(TransferError::PeerFailed(reason)),
            other => {
                let (what, when) = (other.kind(), "before a hello");
                return Err(ProtocolError::OutOfOrder { what, when }.into());
            }
        };
        if hello.version != VERSION {
            return Err(TransferError::Version { peer, theirs: hello.version });
        }
        let (session, client) = match told {
            Some((client, secret)) => self.by_code(channel, &hello, client, &secret)?,
            None => self.by_secret_or_key(channel, &hello)?,
        };
        // After the proof: only who is known learns the rest.
        if has_expired(&client) {
            return Err(TransferError::Expired(peer));
        }
        if hello.measures {
            return Ok((session, hello, client));
        }
        if self.role == Some(hello.role) {
            let what = if hello.role == Role::Sender { "send" } else { "receive" };
            return Err(TransferError::SameRole(peer, what));
        }
        let (may, what) = match hello.role {
            Role::Sender => (client.rights.write, "send"),
            Role::Receiver => (client.rights.read, "receive"),
        };
        if self.role.is_none() && !may {
            return Err(TransferError::NoRight { peer, name: client.name.clone(), what });
        }
        if !self.clients.begin(&client, &hello.transfer)? {
            return Err(TransferError::UsedUp(peer));
        }
        Ok((session, hello, client))
    }

    /// Who was told a code has proved it, or has tried in vain.
    fn by_code(
        &self,
        channel: &Channel,
        hello: &Hello,
        client: Arc<Client>,
        secret: &Secret,
    ) -> Result<(Session, Arc<Client>), TransferError> {
        let session = channel.session(Some(secret))?;
        if !session.is_dialer_proof(&hello.proof) {
            self.clients.wrong_try(&client)?;
            return Err(TransferError::WrongTicket(channel.peer().to_string()));
        }
        self.clients.remember(&client, session.further_secret());
        Ok((session, client))
    }

    /// Whose secret `hello` proves; without one, whose key TLS proved.
    fn by_secret_or_key(
        &self,
        channel: &Channel,
        hello: &Hello,
    ) -> Result<(Session, Arc<Client>), TransferError> {
        let exporter = channel.exporter()?;
        let proved = |secret: Option<&Secret>| {
            Some(Session::new(secret, &exporter)).filter(|s| s.is_dialer_proof(&hello.proof))
        };
        if let Some((client, session)) = self.clients.by_secret(|secret| proved(Some(secret)))? {
            return Ok((session, client));
        }
        let peer = channel.peer().to_string();
        match channel.peer_key().zip(proved(None)) {
            Some((key, session)) => {
                let client = self.clients.by_key(key)?;
                Ok((session, client.ok_or(TransferError::UnknownKey { peer, key })?))
            }
            None => Err(TransferError::WrongTicket(peer)),
        }
    }
}

/// The reason sent to an unauthenticated peer: its next step, and nothing about this host.
fn refusal(error: &TransferError) -> String {
    match error {
        TransferError::WrongTicket(_) => {
            "the ticket's secret is wrong; copy the whole line that the running `sweetspot serve` printed, or the whole code"
        }
        TransferError::NoCode(_) => {
            "there is no such code, or it was tried wrongly too often; ask for another one"
        }
        TransferError::UnknownKey { key, .. } => {
            return format!("your key is not known; have this entered there: {key}");
        }
        TransferError::NoRight { what, .. } => {
            return format!("you may not {what}; ask for the right to");
        }
        TransferError::UsedUp(_) => "this was for one transfer, which was made; ask for another one",
        TransferError::Clients { .. } | TransferError::State { .. } => {
            "nobody is admitted until a fault there is mended"
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
