//! A connection after TLS, with who is at its other end known.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::thread;

use crossbeam_channel::Receiver;
use sweetspot_linux::{clock, sysctl, tcp};
use sweetspot_protocol::frame::{FrameDecoder, FramePart};
use sweetspot_protocol::{
    CodeAddress, Hello, Message, ProtocolError, Role, Session, Ticket, TicketHost, TicketProof,
    VERSION,
};
use sweetspot_units::{Bytes, Duration, Time};

use super::channel::{Channel, SOCKET_READ_BYTES};
use super::identity::Identity;
use super::spoken;
use crate::TransferError;

/// The time limit for connecting to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The head start of an address over the next (RFC 8305, section 5).
const ADDRESS_INTERVAL: Duration = Duration::from_millis(250);
/// The time limit for TLS and the exchange of proofs, from the start of the connection.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(15);

/// Further connections that are made at the same time: a far end admits more from one address.
const DIALS: u32 = 8;
/// How long a further connection is waited for at a time.
const ARRIVAL_INTERVAL: Duration = Duration::from_millis(20);

/// An authenticated connection.
pub(crate) struct Link {
    pub channel: Arc<Channel>,
    pub session: Session,
    pub frames: FrameReader,
}

/// How further connections of a transfer come about.
pub(crate) struct FurtherLinks<'a> {
    /// Those that arrive.
    pub arriving: Receiver<Link>,
    /// Makes one, at the end that connects.
    pub dial: Option<&'a (dyn Fn() -> Result<Link, TransferError> + Sync)>,
}

impl FurtherLinks<'_> {
    /// Hands each over to `take` until the transfer `is_over`. An end that connects makes them while there are fewer than
    /// `wanted`, with the first.
    pub fn run(
        &self,
        is_over: impl Fn() -> bool,
        wanted: impl Fn() -> u32,
        mut take: impl FnMut(Link),
    ) {
        let (made, dialed) = crossbeam_channel::unbounded();
        thread::scope(|scope| {
            let (mut tried, mut under_way) = (1, 0);
            while !is_over() {
                if let Some(dial) = self.dial
                    && tried < wanted()
                    && under_way < DIALS
                {
                    let made = made.clone();
                    let make = move || {
                        let _ = made.send(dial());
                    };
                    tried += 1;
                    under_way +=
                        u32::from(thread::Builder::new().spawn_scoped(scope, make).is_ok());
                    continue;
                }
                let interval = ARRIVAL_INTERVAL.into();
                let link = if under_way > 0 {
                    let Ok(link) = dialed.recv_timeout(interval) else { continue };
                    under_way -= 1;
                    link.ok()
                } else {
                    self.arriving.recv_timeout(interval).ok()
                };
                link.into_iter().for_each(&mut take);
            }
        });
    }
}

/// The frames that arrive on a connection.
pub(crate) struct FrameReader {
    channel: Arc<Channel>,
    decoder: FrameDecoder,
    raw: Vec<u8>,
    /// What of `raw` was read and is still encrypted.
    encrypted: Range<usize>,
    /// A record's plain text, as a rule.
    plain: Vec<u8>,
    /// How much of `plain` was taken.
    used: usize,
}

impl FrameReader {
    pub fn new(channel: Arc<Channel>) -> FrameReader {
        let plain = channel.take_early();
        FrameReader {
            channel,
            decoder: FrameDecoder::default(),
            raw: vec![0; SOCKET_READ_BYTES],
            encrypted: 0..0,
            plain,
            used: 0,
        }
    }

    /// The next part of what was read; `None` if more has to be read.
    pub fn next_part(&mut self) -> Result<Option<FramePart<'_>>, TransferError> {
        if self.used == self.plain.len() {
            self.decrypt()?;
        }
        let mut input = &self.plain[self.used..];
        let before = input.len();
        let part = self.decoder.next(&mut input).map_err(ProtocolError::from)?;
        self.used += before - input.len();
        Ok(part)
    }

    /// Reads more from the connection, when [`FrameReader::next_part`] finds nothing. Returns how much that was; `None`
    /// if the peer closed the connection.
    pub fn read(&mut self, deadline: Option<Time>) -> Result<Option<Bytes>, TransferError> {
        if !self.encrypted.is_empty() {
            // A frame's header lay across two records.
            return Ok(Some(Bytes::ZERO));
        }
        let Some(n) = self.channel.read(&mut self.raw, deadline)? else { return Ok(None) };
        self.encrypted = 0..n;
        Ok(Some(Bytes::new(n as u64)))
    }

    /// Decrypts the next of what was read, when the plain text is used up.
    fn decrypt(&mut self) -> Result<(), TransferError> {
        self.plain.clear();
        self.used = 0;
        let mut rest = &self.raw[self.encrypted.clone()];
        self.channel.decrypt(&mut rest, &mut self.plain)?;
        self.encrypted.start = self.encrypted.end - rest.len();
        Ok(())
    }

    /// Waits until `take` finds what it wants among the parts that arrive, or the deadline. Parts of which it makes
    /// nothing are passed over.
    pub fn wait_for<T>(
        &mut self,
        deadline: Time,
        mut take: impl FnMut(FramePart<'_>) -> Result<Option<T>, TransferError>,
    ) -> Result<T, TransferError> {
        loop {
            while let Some(part) = self.next_part()? {
                if let Some(found) = take(part)? {
                    return Ok(found);
                }
            }
            if self.read(Some(deadline))?.is_none() {
                return Err(self.channel.gone(Bytes::ZERO));
            }
        }
    }

    /// Waits for one message that opens the connection.
    pub fn opening_message(&mut self, deadline: Time) -> Result<Message, TransferError> {
        self.wait_for(deadline, |part| match part {
            FramePart::Message(body) => {
                Ok(Some(Message::read(&body).map_err(ProtocolError::from)?))
            }
            _ => {
                let (what, when) = ("content", "before a message");
                Err(ProtocolError::OutOfOrder { what, when }.into())
            }
        })
    }
}

/// Who to connect to, and how to prove that one may.
#[derive(Debug, Clone)]
pub enum Contact {
    /// Who printed this ticket; by its secret, or where it has none by the key of this identity.
    Ticket(Box<Ticket>, Option<Identity>),
    /// Who told this code.
    Code(CodeAddress),
}

impl From<Ticket> for Contact {
    fn from(ticket: Ticket) -> Contact {
        Contact::Ticket(Box::new(ticket), None)
    }
}

impl Contact {
    fn address(&self) -> (&TicketHost, u16) {
        match self {
            Contact::Ticket(ticket, _) => (&ticket.host, ticket.port),
            Contact::Code(address) => (&address.host, address.port),
        }
    }

    /// Connects, for the transfer of this name. Returns the connection, and the ticket for further ones where this one
    /// used up a code.
    pub(crate) fn dial(
        &self,
        role: Role,
        transfer: &str,
        joins: bool,
        congestion: Option<&str>,
    ) -> Result<(Link, Option<Ticket>), TransferError> {
        self.greet(congestion, |proof| Hello {
            version: VERSION,
            proof,
            role,
            transfer: transfer.to_owned(),
            joins,
            measures: false,
        })
    }

    /// Connects to measure the path; `joins` if only to fill it.
    pub(crate) fn dial_to_measure(&self, joins: bool) -> Result<Link, TransferError> {
        let (link, _) = self.greet(None, |proof| Hello {
            version: VERSION,
            proof,
            role: Role::Receiver,
            transfer: String::new(),
            joins,
            measures: true,
        })?;
        Ok(link)
    }

    fn greet(
        &self,
        congestion: Option<&str>,
        hello: impl FnOnce(String) -> Hello,
    ) -> Result<(Link, Option<Ticket>), TransferError> {
        let deadline = clock::now() + HANDSHAKE_TIMEOUT;
        let (host, port) = self.address();
        let socket = connect(host, port)?;
        if let Some(name) = congestion {
            set_congestion(&socket, name)?;
        }
        let (expected, own) = match self {
            Contact::Ticket(ticket, own) => (Some(ticket.fingerprint), own.as_ref()),
            Contact::Code(_) => (None, None),
        };
        let channel = Arc::new(Channel::connect(socket, expected, own, deadline)?);
        let mut frames = FrameReader::new(Arc::clone(&channel));
        let secret = match self {
            Contact::Ticket(ticket, _) => ticket.secret().cloned(),
            Contact::Code(at) => Some(spoken::dial(&at.code, &channel, &mut frames, deadline)?),
        };
        let session = channel.session(secret.as_ref())?;
        channel.say(&Message::Hello(hello(session.dialer_proof())))?;
        match frames.opening_message(clock::now() + HANDSHAKE_TIMEOUT)? {
            Message::Welcome { proof } if session.is_listener_proof(&proof) => {}
            Message::Welcome { .. } => {
                return Err(TransferError::CertificateMismatch(channel.peer().to_string()));
            }
            Message::Refuse { reason } | Message::Failed { reason } => {
                return Err(TransferError::Refused(reason));
            }
            other => {
                let (what, when) = (other.kind(), "before a welcome");
                return Err(ProtocolError::OutOfOrder { what, when }.into());
            }
        }
        // What the code proved is this very certificate: both proofs are bound to the connection.
        let further = match (self, channel.peer_key()) {
            (Contact::Code(at), Some(key)) => Some(Ticket {
                host: at.host.clone(),
                port: at.port,
                fingerprint: key.0,
                proof: TicketProof::Secret { secret: session.further_secret(), expires: Time::MAX },
            }),
            _ => None,
        };
        Ok((Link { channel, session, frames }, further))
    }
}

/// Whether who printed `ticket` answers at its address before `deadline`.
pub(crate) fn answers(ticket: &Ticket, deadline: Time) -> bool {
    let reach = || -> Option<Channel> {
        let socket = connect(&ticket.host, ticket.port).ok()?;
        Channel::connect(socket, Some(ticket.fingerprint), None, deadline).ok()
    };
    reach().map(|channel| channel.sever()).is_some()
}

/// Connects to the first of the host's addresses that answers (RFC 8305: the next is tried while one is waited for).
fn connect(host: &TicketHost, port: u16) -> Result<TcpStream, TransferError> {
    let address = format!("{host}:{port}");
    let cannot = |source| TransferError::Unreachable { address: address.clone(), source };
    let candidates: Vec<SocketAddr> = match host {
        TicketHost::Address(ip) => vec![(*ip, port).into()],
        TicketHost::Name(name) => {
            (name.as_str(), port).to_socket_addrs().map_err(cannot)?.collect()
        }
    };
    let (answers, first) = mpsc::channel();
    let mut waited_for = 0;
    let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
    let mut candidates = in_turns(candidates).into_iter();
    loop {
        let next = candidates.next();
        let more = next.is_some();
        if let Some(candidate) = next {
            let answers = answers.clone();
            let start = move || {
                let _ =
                    answers.send(TcpStream::connect_timeout(&candidate, CONNECT_TIMEOUT.into()));
            };
            let started = thread::Builder::new().name("connect".into()).spawn(start);
            started.map_err(TransferError::system("starting a thread"))?;
            waited_for += 1;
        } else if waited_for == 0 {
            return Err(cannot(last));
        }
        let patience = if more { ADDRESS_INTERVAL } else { CONNECT_TIMEOUT * 2 };
        match first.recv_timeout(patience.into()) {
            Ok(Ok(socket)) => return Ok(socket),
            Ok(Err(error)) => {
                last = error;
                waited_for -= 1;
            }
            Err(_) if more => {}
            Err(_) => return Err(cannot(last)),
        }
    }
}

/// Addresses of the two families in turn, beginning with the family that the resolver put first (RFC 8305, section
/// 4).
fn in_turns(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let Some(is_first_v6) = addresses.first().map(SocketAddr::is_ipv6) else { return addresses };
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == is_first_v6);
    let longer = first.len().max(second.len());
    let pick = |i: usize| [first.get(i), second.get(i)];
    (0..longer).flat_map(pick).flatten().copied().collect()
}

/// Sets the congestion control of `socket`.
pub(crate) fn set_congestion(socket: &TcpStream, name: &str) -> Result<(), TransferError> {
    tcp::options::set_congestion(socket, name).map_err(|source| TransferError::Congestion {
        name: name.to_owned(),
        source,
        available: sysctl::available_congestion_controls().unwrap_or_default().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns_and_no_address_is_lost() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let all = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"].map(address);
        let turns = in_turns(all.to_vec());
        assert_eq!(turns, ["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"].map(address));
        assert!(in_turns(Vec::new()).is_empty());
    }
}
