//! A connection after TLS, with who is at its other end known.

use std::fmt;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use crossbeam_channel::Receiver;
use sweetspot_linux::{clock, sysctl, tcp};
use sweetspot_protocol::frame::{FrameDecoder, FramePart};
use sweetspot_protocol::{
    CodeAddress, Hello, Message, PeerText, ProtocolError, Role, Session, Ticket, TicketHost,
    TicketProof, VERSION,
};
use sweetspot_units::{Bytes, Duration, Time};

use super::channel::{Channel, SOCKET_READ_BYTES, lock};
use super::identity::Identity;
use super::over::Over;
use super::spoken;
use crate::TransferError;
use crate::limits::{FRAME_GRACE, MIN_FRAME_RATE};

/// The time limit for connecting to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The head start of an address over the next (RFC 8305, section 5).
const ADDRESS_INTERVAL: Duration = Duration::from_millis(250);
/// The time limit for TLS and the exchange of proofs, from the start of the connection.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(15);

/// Further connections that are made at the same time: a far end admits more from one address.
const DIALS: u32 = 8;
/// The time between two looks at how many connections are wanted.
const WANTED_INTERVAL: Duration = Duration::from_millis(20);

/// An authenticated connection.
pub(crate) struct Link {
    pub channel: Arc<Channel>,
    pub session: Session,
    pub frames: FrameReader,
    /// Content that the receiving end takes before it has answered, bytes.
    pub early_bytes: u32,
}

/// How further connections of a transfer come about.
pub(crate) struct FurtherLinks<'a> {
    /// Those that arrive.
    pub arriving: Receiver<Link>,
    /// Makes one, at the end that connects.
    pub dial: Option<&'a (dyn Fn() -> Result<Link, TransferError> + Sync)>,
}

impl FurtherLinks<'_> {
    /// Hands each over to `take` until the transfer is `over`. An end that connects makes them while there are fewer than
    /// `wanted`, with the first.
    pub fn run(&self, over: &Over, wanted: impl Fn() -> u32, mut take: impl FnMut(Link)) {
        let (made, dialed) = crossbeam_channel::unbounded::<Result<Link, TransferError>>();
        thread::scope(|scope| {
            let (mut tried, mut under_way) = (1, 0);
            while !over.is_set() {
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
                let link = crossbeam_channel::select! {
                    recv(dialed) -> link => {
                        under_way -= 1;
                        link.ok().and_then(Result::ok)
                    }
                    recv(self.arriving) -> link => link.ok(),
                    recv(over.ended()) -> _ => None,
                    default(WANTED_INTERVAL.into()) => None,
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
    frame: FrameClock,
}

/// How long a frame that is arriving has kept its reader waiting, and the bytes that came meanwhile.
#[derive(Debug, Default)]
struct FrameClock {
    waited: Duration,
    arrived: u64,
}

impl FrameClock {
    /// The reader waited for `waited`, and `bytes` of the frame came.
    fn note(&mut self, waited: Duration, bytes: u64) {
        self.waited += waited;
        self.arrived += bytes;
    }

    /// Whether the frame arrives more slowly than the slowest path would bring it.
    fn is_too_slow(&self) -> bool {
        let paid_for = Duration::from_secs(self.arrived / MIN_FRAME_RATE);
        self.waited > FRAME_GRACE + paid_for
    }
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
            frame: FrameClock::default(),
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
        if part.is_some() && self.decoder.is_between_frames() {
            self.frame = FrameClock::default();
        }
        Ok(part)
    }

    /// Reads more from the connection, when [`FrameReader::next_part`] finds nothing. Returns how much that was; `None`
    /// if the peer closed the connection.
    pub fn read(&mut self, deadline: Option<Time>) -> Result<Option<Bytes>, TransferError> {
        if !self.encrypted.is_empty() {
            // A frame's header lay across two records.
            return Ok(Some(Bytes::ZERO));
        }
        if self.frame.is_too_slow() {
            return Err(TransferError::TooSlow(self.channel.peer().to_string()));
        }
        // Between frames a peer may rest for as long as it says that it is there.
        let rests = self.frame.arrived == 0 && self.decoder.is_between_frames();
        let start = clock::now();
        let Some(n) = self.channel.read(&mut self.raw, deadline)? else { return Ok(None) };
        self.encrypted = 0..n;
        let waited = if rests { Duration::ZERO } else { clock::now().since(start) };
        self.frame.note(waited, n as u64);
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
            // However slowly the peer sends: each byte would put off a limit that counts silence alone.
            if clock::now() >= deadline {
                return Err(TransferError::TooSlow(self.channel.peer().to_string()));
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
    /// Who printed this ticket and answers at its address.
    Reached(Box<Ticket>, Reached),
}

/// The connection over which a listener answered, until it is used.
#[derive(Clone)]
pub struct Reached(Arc<Mutex<Option<Channel>>>);

impl Reached {
    pub(crate) fn new(channel: Channel) -> Reached {
        Reached(Arc::new(Mutex::new(Some(channel))))
    }
}

impl fmt::Debug for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reached").field(&lock(&self.0).is_some()).finish()
    }
}

impl fmt::Display for Contact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = self.address();
        write!(f, "{host}:{port}")
    }
}

impl From<Ticket> for Contact {
    fn from(ticket: Ticket) -> Contact {
        Contact::Ticket(Box::new(ticket), None)
    }
}

impl Contact {
    fn address(&self) -> (&TicketHost, u16) {
        match self {
            Contact::Ticket(ticket, _) | Contact::Reached(ticket, _) => (&ticket.host, ticket.port),
            Contact::Code(address) => (&address.host, address.port),
        }
    }

    /// Connects, for the transfer of this name. Returns the connection, and the ticket for further ones where this one
    /// used up a code. A receiver takes `early_bytes` of content before it has answered.
    pub(crate) fn dial(
        &self,
        role: Role,
        transfer: &str,
        joins: bool,
        early_bytes: u32,
        congestion: Option<&str>,
    ) -> Result<(Link, Option<Ticket>), TransferError> {
        self.greet(congestion, |proof| Hello {
            version: VERSION,
            proof,
            role,
            transfer: transfer.into(),
            joins,
            measures: false,
            early_bytes,
        })
    }

    /// Connects to measure the path; `joins` if only to fill it.
    pub(crate) fn dial_to_measure(&self, joins: bool) -> Result<Link, TransferError> {
        let (link, _) = self.greet(None, |proof| Hello {
            version: VERSION,
            proof,
            role: Role::Receiver,
            transfer: PeerText::default(),
            joins,
            measures: true,
            early_bytes: 0,
        })?;
        Ok(link)
    }

    /// Connects, TLS included.
    fn connect(&self, congestion: Option<&str>, deadline: Time) -> Result<Channel, TransferError> {
        if let Contact::Reached(_, reached) = self
            && let Some(channel) = lock(&reached.0).take()
        {
            congestion.map_or(Ok(()), |name| set_congestion(channel.socket(), name))?;
            return Ok(channel);
        }
        let (host, port) = self.address();
        let socket = connect(host, port)?;
        congestion.map_or(Ok(()), |name| set_congestion(&socket, name))?;
        let (expected, own) = match self {
            Contact::Ticket(ticket, own) => (Some(ticket.fingerprint), own.as_ref()),
            Contact::Reached(ticket, _) => (Some(ticket.fingerprint), None),
            Contact::Code(_) => (None, None),
        };
        Channel::connect(socket, expected, own, deadline)
    }

    fn greet(
        &self,
        congestion: Option<&str>,
        hello: impl FnOnce(PeerText) -> Hello,
    ) -> Result<(Link, Option<Ticket>), TransferError> {
        let deadline = clock::now() + HANDSHAKE_TIMEOUT;
        let channel = Arc::new(self.connect(congestion, deadline)?);
        let mut frames = FrameReader::new(Arc::clone(&channel));
        let secret = match self {
            Contact::Ticket(ticket, _) | Contact::Reached(ticket, _) => ticket.secret().cloned(),
            Contact::Code(at) => Some(spoken::dial(&at.code, &channel, &mut frames, deadline)?),
        };
        let session = channel.session(secret.as_ref())?;
        let hello = hello(session.dialer_proof());
        let (receives, taken) = (hello.role == Role::Receiver, hello.early_bytes);
        channel.say(&Message::Hello(hello))?;
        let answer = frames.opening_message(clock::now() + HANDSHAKE_TIMEOUT);
        // The listener has made its guess, too: a code is not tried again because the path broke.
        let answer = answer.map_err(|error| match self {
            Contact::Code(_) if error.is_of_the_path() => {
                TransferError::CodeCut(channel.peer().to_string())
            }
            _ => error,
        });
        let early_bytes = match answer? {
            Message::Welcome { proof, early_bytes } if session.is_listener_proof(&proof) => {
                if receives {
                    taken
                } else {
                    early_bytes
                }
            }
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
        };
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
        Ok((Link { channel, session, frames, early_bytes }, further))
    }
}

/// The connection to who printed `ticket`, if it answers at its address before `deadline`.
pub(crate) fn reach(ticket: &Ticket, deadline: Time) -> Option<Channel> {
    let socket = connect(&ticket.host, ticket.port).ok()?;
    Channel::connect(socket, Some(ticket.fingerprint), None, deadline).ok()
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
    tcp::options::set_congestion(socket, name).map_err(|source| {
        let list = |names: std::io::Result<Vec<String>>| names.unwrap_or_default().join(", ");
        let hint = if source.kind() == std::io::ErrorKind::PermissionDenied {
            format!(
                "without root this host allows {}; root adds others to net.ipv4.tcp_allowed_congestion_control",
                list(sysctl::allowed_congestion_controls())
            )
        } else {
            format!("this kernel offers {}", list(sysctl::available_congestion_controls()))
        };
        TransferError::Congestion { name: name.to_owned(), source, hint }
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::io::identity::AskFor;
    use sweetspot_protocol::frame::message;

    #[test]
    fn a_frame_that_trickles_is_too_slow_and_one_of_a_slow_path_is_not() {
        // A byte every 0.4 s pays for 1/32 s: more than 60 s are waited after 60 / (0.4 - 1/32) = 163 bytes.
        let mut frame = FrameClock::default();
        let trickle = (1..).find(|_| {
            frame.note(Duration::from_millis(400), 1);
            frame.is_too_slow()
        });
        assert_eq!(trickle, Some(163));
        // 64 connections share 64 kbit/s: each brings 125 bytes in a second.
        let mut frame = FrameClock::default();
        for _ in 0..10_000 {
            frame.note(Duration::from_secs(1), 125);
            assert!(!frame.is_too_slow());
        }
        // An outage that the path survives.
        let mut frame = FrameClock::default();
        frame.note(crate::limits::PEER_TIMEOUT, 1);
        assert!(!frame.is_too_slow());
    }

    #[test]
    fn a_deadline_holds_although_the_peer_sends() {
        let identity = Identity::fresh().unwrap();
        let (expected, config) = (identity.public_key().0, identity.listening(AskFor::Nothing));
        let config = config.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let soon = clock::now() + HANDSHAKE_TIMEOUT;
        let (near, far) = thread::scope(|scope| {
            let far = scope.spawn(|| {
                let socket = TcpStream::connect(address).unwrap();
                Channel::connect(socket, Some(expected), None, soon).unwrap()
            });
            let (socket, _) = listener.accept().unwrap();
            (Channel::accept(socket, &config, soon).unwrap(), far.join().unwrap())
        });
        // There is always something to read, and never a whole message.
        far.write(&[&message(b"{}")[..4]]).unwrap();
        far.sever();
        let error = FrameReader::new(Arc::new(near)).opening_message(clock::now()).unwrap_err();
        assert!(matches!(error, TransferError::TooSlow(_)), "{error}");
    }

    #[test]
    fn families_take_turns_and_no_address_is_lost() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let all = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"].map(address);
        let turns = in_turns(all.to_vec());
        assert_eq!(turns, ["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"].map(address));
        assert!(in_turns(Vec::new()).is_empty());
    }
}
