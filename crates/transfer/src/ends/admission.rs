//! Admission: from an accepted TCP connection to a peer that proved its ticket.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;

use rustls::ServerConfig;
use sweetspot_linux::clock;
use sweetspot_linux::event_fd::{is_readable, wait_readable};
use sweetspot_protocol::clients::Client;
use sweetspot_protocol::{Hello, Message, ProtocolError, Role, Secret, Session, VERSION};
use sweetspot_units::Time;

use crate::ends::claim::{Claim, Unavailable};
use crate::ends::client_table::{ClientTable, CodeTry, at, has_expired};
use crate::ends::session_table::{Place, SessionTable};
use crate::limits::{ADMISSION_TIMEOUT, FIRST_BYTE_TIMEOUT, MAX_EARLY_CONTENT};
use crate::wire::channel::Channel;
use crate::wire::frame_reader::FrameReader;
use crate::wire::link::Link;
use crate::wire::spoken;
use crate::{Result, TransferError};

/// Decides which peers a server admits.
pub(crate) struct Admission {
    pub config: Arc<ServerConfig>,
    pub clients: ClientTable,
    /// This end's role; `None`: either role, depending on the client's rights.
    pub role: Option<Role>,
    /// Whether this end's key is valid only while its program runs.
    pub ends_with_program: bool,
}

pub(crate) struct Admitted<'a> {
    pub link: Link,
    pub hello: Hello,
    pub client: Arc<Client>,
    /// Held until the end of the session; `None` for a further connection of a transfer.
    pub stay: Option<Stay<'a>>,
}

/// A session's place, and the claim of its transfer.
pub(crate) struct Stay<'a> {
    pub claim: Option<Claim<'a>>,
    _place: Place<'a>,
}

impl Admission {
    /// Admits or rejects the peer of an accepted socket. The peer and the caller learn the reason; the caller also learns which
    /// client the peer has `proved` to be.
    pub fn admit<'a>(
        &'a self,
        (socket, address): (TcpStream, SocketAddr),
        sessions: &'a SessionTable,
        proved: &mut Option<Arc<Client>>,
    ) -> Result<Admitted<'a>> {
        let deadline = clock::now() + ADMISSION_TIMEOUT;
        let first = clock::now() + FIRST_BYTE_TIMEOUT;
        // Before this end allocates anything, so that a silent client costs little.
        let waited = wait_readable(&[socket.as_fd()], first);
        if waited.is_err() || !is_readable(socket.as_fd()) {
            let patience = FIRST_BYTE_TIMEOUT;
            return Err(TransferError::Silent { peer: address.to_string(), patience });
        }
        let channel = Arc::new(Channel::accept(socket, &self.config, deadline)?);
        let mut frames = FrameReader::new(Arc::clone(&channel));
        let judged =
            self.prove(&channel, &mut frames, deadline).and_then(|(session, hello, client)| {
                *proved = Some(Arc::clone(&client));
                let stay = self.judge(channel.peer(), &hello, &client, sessions)?;
                Ok((session, hello, client, stay))
            });
        match judged {
            Ok((session, hello, client, stay)) => {
                // A further connection or a measurement lists no files.
                let takes = hello.role == Role::Sender && !hello.joins && !hello.measures;
                let accepted = if takes { MAX_EARLY_CONTENT } else { 0 };
                let proof = session.listener_proof();
                let ends_with_program = self.ends_with_program;
                channel.send_message(&Message::Welcome {
                    proof,
                    early_bytes: accepted,
                    ends_with_program,
                })?;
                let early_bytes = if takes { accepted } else { hello.early_bytes };
                let link = Link { channel, session, frames, early_bytes };
                Ok(Admitted { link, hello, client, stay })
            }
            Err(error) => {
                let error = match error {
                    TransferError::Silent { peer, .. } | TransferError::TooSlow(peer)
                        if clock::now() >= deadline =>
                    {
                        TransferError::NotProved { peer, patience: ADMISSION_TIMEOUT }
                    }
                    other => other,
                };
                channel.hang_up(&Message::Refuse { reason: refusal(&error).into() });
                Err(error)
            }
        }
    }

    /// Reads the peer's hello, and determines which client it proves.
    fn prove(
        &self,
        channel: &Channel,
        frames: &mut FrameReader,
        deadline: Time,
    ) -> Result<(Session, Hello, Arc<Client>)> {
        let peer = channel.peer().to_string();
        let mut message = frames.opening_message(deadline)?;
        let mut code_attempt = None;
        if let Message::Pake { code, element } = &message {
            let no_code = || TransferError::NoCode(peer.clone());
            let (client, code) = self.clients.code(*code).ok_or_else(no_code)?;
            let (secret, answer) = spoken::answer(&code, element.raw())?;
            let one_try = self.clients.try_code(client)?.ok_or_else(no_code)?;
            channel.send_message(&answer)?;
            code_attempt = Some((one_try, secret));
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
        let (session, client) = match code_attempt {
            Some((one_try, secret)) => by_code(channel, &hello, &one_try, &secret)?,
            None => self.by_secret_or_key(channel, &hello)?,
        };
        Ok((session, hello, client))
    }

    /// Admits or rejects what a proved `client` asks for; only a known client may learn the reasons here.
    fn judge<'a>(
        &'a self,
        address: SocketAddr,
        hello: &Hello,
        client: &Arc<Client>,
        sessions: &'a SessionTable,
    ) -> Result<Option<Stay<'a>>> {
        let peer = at(client, address);
        // A further connection belongs to a running transfer, or is rejected later. A transfer admitted before the expiry may
        // resume: only its client knows its number.
        let is_ongoing = || hello.joins || sessions.is_ongoing(hello.transfer.raw(), client);
        if has_expired(client) && (hello.measures || !is_ongoing()) {
            return Err(TransferError::Expired(peer));
        }
        if hello.measures {
            // A measurement uses the path and this end's resources, so its credential must still be
            // valid.
            if self.clients.is_used_up(client) {
                return Err(TransferError::UsedUp(peer));
            }
            let _place = sessions.place(client, None).map_err(|no| no.error(peer))?;
            return Ok(Some(Stay { claim: None, _place }));
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
            return Err(TransferError::NoRight { peer, what });
        }
        if hello.joins {
            return Ok(None);
        }
        let transfer = hello.transfer.raw();
        let _place = sessions.place(client, Some(transfer)).map_err(|no| no.error(peer.clone()))?;
        // Last, because this claims a one-time credential.
        let claim = self.clients.claim(client, transfer)?.map_err(|why| match why {
            Unavailable::Spent => TransferError::UsedUp(peer.clone()),
            Unavailable::InUse => TransferError::InTurn(peer.clone()),
        })?;
        Ok(Some(Stay { claim: Some(claim), _place }))
    }

    /// The client proved by the secret in `hello`, or, without a secret, by the key in TLS.
    fn by_secret_or_key(&self, channel: &Channel, hello: &Hello) -> Result<(Session, Arc<Client>)> {
        let exporter = channel.exporter()?;
        let proved = |secret: Option<&Secret>| {
            Some(Session::new(secret, &exporter)).filter(|s| s.is_dialer_proof(&hello.proof))
        };
        if let Some((client, session)) = self.clients.by_secret(|secret| proved(Some(secret))) {
            return Ok((session, client));
        }
        let peer = channel.peer().to_string();
        match channel.peer_key().zip(proved(None)) {
            Some((key, session)) => {
                let client = self.clients.by_key(key);
                match client {
                    Some(client) => Ok((session, client)),
                    None if self.clients.is_faulty(key) => {
                        Err(TransferError::WrongLine { peer, key })
                    }
                    None => Err(TransferError::UnknownKey { peer, key }),
                }
            }
            None => Err(TransferError::WrongTicket(peer)),
        }
    }
}

/// The session with a peer that used a code's only attempt and proved the code.
fn by_code(
    channel: &Channel,
    hello: &Hello,
    one_try: &CodeTry<'_>,
    secret: &Secret,
) -> Result<(Session, Arc<Client>)> {
    let session = channel.session(Some(secret))?;
    if !session.is_dialer_proof(&hello.proof) {
        return Err(TransferError::WrongCode(channel.peer().to_string()));
    }
    one_try.succeed(session.further_secret())?;
    Ok((session, Arc::clone(&one_try.client)))
}

/// The reason sent to an unauthenticated peer: its next step, and nothing about this host.
fn refusal(error: &TransferError) -> String {
    match error {
        TransferError::WrongTicket(_) => {
            "the ticket's secret is wrong, or was revoked; copy the whole line that the other program printed, or ask for a new one"
        }
        TransferError::WrongCode(_) => {
            "the code is wrong, and this attempt has invalidated it; ask for a new one"
        }
        TransferError::NoCode(_) => {
            "there is no such code, or a wrong attempt has invalidated it; ask for a new one"
        }
        TransferError::UnknownKey { key, .. } => {
            return format!("unknown key; ask the operator to add it to the clients file: {key}");
        }
        TransferError::WrongLine { .. } => {
            "your line in the clients file has a mistake; ask the operator to fix it"
        }
        TransferError::NoRight { what, .. } => {
            return format!("you have no right to {what}; ask the operator for it");
        }
        TransferError::UsedUp(_) => "this one-time ticket or code has already been used; ask for a new one",
        TransferError::InTurn(_) => {
            "another transfer with this one-time ticket is running; try again when it has ended"
        }
        TransferError::Clients { .. } | TransferError::State { .. } => {
            "the server cannot use its own files and admits no client; ask its operator to repair them"
        }
        TransferError::Full { what, .. } => what,
        TransferError::Expired(_) => "the ticket has expired; ask for a new one",
        TransferError::Version { .. } => {
            "the versions differ; use the same version of sweetspot on both ends"
        }
        TransferError::SameRole(_, "send") => "that ticket is for receiving; use `sweetspot receive`",
        TransferError::SameRole(..) => "that ticket is for sending; use `sweetspot send`",
        _ => "the handshake was not understood",
    }
    .to_owned()
}
