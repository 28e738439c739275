//! Admission: from an accepted TCP connection to a sender that proved its ticket.

use std::net::TcpStream;
use std::path::PathBuf;

use sweetspot_linux::clock;
use sweetspot_linux::tcp::ClampMethod;
use sweetspot_protocol::frame::FrameDecoder;
use sweetspot_protocol::{
    Hello, Message, ProtocolError, ReceiverOrder, Secret, SenderItem, Session, VERSION,
};
use sweetspot_sizing::{KnownPath, Sizing};
use sweetspot_units::{Bytes, Duration, Time};

use super::channel::{Channel, Incoming, SOCKET_READ_BYTES};
use super::identity::Identity;
use crate::TransferError;

/// The time in which a connection must prove the ticket.
const ADMISSION_TIMEOUT: Duration = Duration::from_secs(10);

/// The configuration of a server, for all its connections.
pub(crate) struct ServerConfig {
    pub identity: Identity,
    pub secret: Secret,
    /// When the ticket expires, on the wall clock.
    pub expires: Time,
    pub directory: PathBuf,
    pub overwrite: bool,
    pub sizing: Option<Sizing>,
    pub congestion: Option<String>,
    pub path: Option<KnownPath>,
    pub probes: bool,
    pub clamp_method: ClampMethod,
}

/// An admitted sender, and what was already read of its stream.
pub(crate) struct Admitted {
    pub channel: Channel,
    pub session: Session,
    pub hello: Hello,
    pub handshake: AfterHello,
}

/// A sender's stream right after its hello.
pub(crate) struct AfterHello {
    pub order: ReceiverOrder,
    pub decoder: FrameDecoder,
    /// Plain text that followed the hello.
    pub rest: Vec<u8>,
}

/// Admits the sender behind `socket`, or refuses it. The sender and the caller learn why.
pub(crate) fn admit(config: &ServerConfig, socket: TcpStream) -> Result<Admitted, TransferError> {
    let deadline = clock::now() + ADMISSION_TIMEOUT;
    let channel = Channel::accept(socket, &config.identity, deadline)?;
    let session = channel.session(&config.secret)?;
    let judged = read_hello(&channel, deadline).and_then(|(hello, handshake)| {
        judge(config, &session, &channel, &hello).map(|()| (hello, handshake))
    });
    match judged {
        Ok((hello, handshake)) => Ok(Admitted { channel, session, hello, handshake }),
        Err(error) => {
            channel.hang_up(&Message::Refuse { reason: refusal(&error) });
            Err(error)
        }
    }
}

/// Reads the sender's hello.
fn read_hello(channel: &Channel, deadline: Time) -> Result<(Hello, AfterHello), TransferError> {
    let (mut order, mut decoder) = (ReceiverOrder::default(), FrameDecoder::default());
    let (mut raw, mut plain) = (vec![0; SOCKET_READ_BYTES], Vec::new());
    loop {
        let left = deadline.since(clock::now());
        if left == Duration::ZERO {
            return Err(channel.silent(ADMISSION_TIMEOUT));
        }
        plain.clear();
        match channel.read_within(&mut raw, &mut plain, left) {
            Ok(Incoming::Bytes(_)) => {}
            Ok(Incoming::Closed) => return Err(channel.gone(Bytes::ZERO)),
            Err(TransferError::Silent { .. }) => return Err(channel.silent(ADMISSION_TIMEOUT)),
            Err(error) => return Err(error),
        }
        let mut input = &plain[..];
        let Some(piece) = decoder.next(&mut input).map_err(ProtocolError::from)? else { continue };
        return match order.handle(piece)? {
            SenderItem::Hello(hello) => {
                let rest = input.to_vec();
                Ok((hello, AfterHello { order, decoder, rest }))
            }
            SenderItem::Failed(reason) => Err(TransferError::PeerFailed(reason)),
            // Nothing else is in order before a hello.
            _ => Err(channel.gone(Bytes::ZERO)),
        };
    }
}

fn judge(
    config: &ServerConfig,
    session: &Session,
    channel: &Channel,
    hello: &Hello,
) -> Result<(), TransferError> {
    let peer = channel.peer().to_string();
    if hello.version != VERSION {
        return Err(TransferError::Version { peer, theirs: hello.version });
    }
    if !session.is_sender_proof(&hello.proof) {
        return Err(TransferError::WrongTicket(peer));
    }
    // After the proof: only who held the ticket learns that it has expired.
    if clock::wall() >= config.expires {
        return Err(TransferError::Expired(peer));
    }
    Ok(())
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
        _ => "the handshake was not understood",
    }
    .to_owned()
}
