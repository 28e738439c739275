//! A connection after TLS, with a known peer.

use std::fmt;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use crossbeam_channel::Receiver;
use sweetspot_linux::{clock, sysctl, tcp};
use sweetspot_protocol::{
    CodeAddress, Hello, Message, PeerText, ProtocolError, Role, Session, Ticket, TicketHost,
    TicketProof, VERSION,
};
use sweetspot_units::{Duration, Time};

use crate::lock::lock;
use crate::wire::channel::Channel;
use crate::wire::end_signal::EndSignal;
use crate::wire::frame_reader::FrameReader;
use crate::wire::identity::Identity;
use crate::wire::spoken;
use crate::{Result, TransferError};

/// The time limit for connecting to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The head start of an address over the next one (RFC 8305, section 5).
const ADDRESS_INTERVAL: Duration = Duration::from_millis(250);
/// The time limit for TLS and the exchange of proofs, from the start of the connection.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum further connections that are being opened at once: the far end admits more from one address.
const DIALS: u32 = 8;
/// Interval between checks of the number of connections wanted.
const WANTED_INTERVAL: Duration = Duration::from_millis(20);
/// Pause after a further connection failed.
const REDIAL_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct Link {
    pub channel: Arc<Channel>,
    pub session: Session,
    pub frames: FrameReader,
    /// Content that the receiver accepts before it has answered, bytes.
    pub early_bytes: u32,
}

/// The source of a transfer's further connections.
pub(crate) struct FurtherLinks<'a> {
    pub arriving: Receiver<Link>,
    /// Opens a further connection; `None` at the listening end.
    pub dial: Option<&'a (dyn Fn() -> Result<Link> + Sync)>,
}

impl FurtherLinks<'_> {
    /// Passes each further connection to `take` until the transfer is `over`. A connecting end opens them while there are
    /// fewer than `target`, including the first. It gives up after `target` failures.
    pub fn run(&self, over: &EndSignal, target: impl Fn() -> u32, mut take: impl FnMut(Link)) {
        let (made, dialed) = crossbeam_channel::unbounded::<Result<Link>>();
        thread::scope(|scope| {
            let (mut made_or_begun, mut in_progress, mut failed) = (1, 0, 0);
            let mut pause_until = Time::ZERO;
            while !over.is_set() {
                if let Some(dial) = self.dial
                    && made_or_begun < target()
                    && failed < target()
                    && in_progress < DIALS
                    && clock::now() >= pause_until
                {
                    let made = made.clone();
                    let make = move || {
                        let _ = made.send(dial());
                    };
                    if thread::Builder::new().spawn_scoped(scope, make).is_ok() {
                        (made_or_begun, in_progress) = (made_or_begun + 1, in_progress + 1);
                    } else {
                        (failed, pause_until) = (failed + 1, clock::now() + REDIAL_PAUSE);
                    }
                    continue;
                }
                let link = crossbeam_channel::select! {
                    recv(dialed) -> link => {
                        in_progress -= 1;
                        let link = link.ok().and_then(Result::ok);
                        if link.is_none() {
                            (made_or_begun, failed) = (made_or_begun - 1, failed + 1);
                            pause_until = clock::now() + REDIAL_PAUSE;
                        }
                        link
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

/// The peer to connect to, and the credential for it.
#[derive(Debug, Clone)]
pub enum Contact {
    /// The peer that printed this ticket. It admits this end by the ticket's secret, or, without one, by the key of this
    /// identity.
    Ticket(Box<Ticket>, Option<Identity>),
    /// The peer that issued this code.
    Code(CodeAddress),
    /// The peer that printed this ticket, already connected.
    Reached(Box<Ticket>, Reached),
}

/// The connection to a listener that answered, until it is used.
#[derive(Clone)]
pub struct Reached(Arc<Mutex<Option<Channel>>>);

impl Reached {
    pub(crate) fn new(channel: Channel) -> Reached {
        Reached(Arc::new(Mutex::new(Some(channel))))
    }
}

/// A connection that the listener accepted.
pub(crate) struct Greeted {
    pub link: Link,
    /// The ticket for further connections, if this one was admitted by a code.
    pub further: Option<Ticket>,
    /// Whether the listener's key is valid only while its program runs.
    pub ends_with_program: bool,
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

    /// Connects for the transfer with this name. A receiver accepts `early_bytes` of content before it has answered.
    pub(crate) fn dial(
        &self,
        role: Role,
        transfer: &str,
        joins: bool,
        early_bytes: u32,
        congestion: Option<&str>,
    ) -> Result<Greeted> {
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

    /// Connects to measure the path; `joins` for a further connection that only carries load.
    pub(crate) fn dial_to_measure(&self, joins: bool) -> Result<Link> {
        let greeted = self.greet(None, |proof| Hello {
            version: VERSION,
            proof,
            role: Role::Receiver,
            transfer: PeerText::default(),
            joins,
            measures: true,
            early_bytes: 0,
        })?;
        Ok(greeted.link)
    }

    /// Connects and completes the TLS handshake.
    fn connect(&self, congestion: Option<&str>, deadline: Time) -> Result<Channel> {
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
    ) -> Result<Greeted> {
        let deadline = clock::now() + HANDSHAKE_TIMEOUT;
        let channel = Arc::new(self.connect(congestion, deadline)?);
        let mut frames = FrameReader::new(Arc::clone(&channel));
        let secret = match self {
            Contact::Ticket(ticket, _) | Contact::Reached(ticket, _) => ticket.secret().cloned(),
            Contact::Code(at) => Some(spoken::dial(&at.code, &channel, &mut frames, deadline)?),
        };
        let session = channel.session(secret.as_ref())?;
        let hello = hello(session.dialer_proof());
        let (receives, accepted_bytes) = (hello.role == Role::Receiver, hello.early_bytes);
        channel.send_message(&Message::Hello(hello))?;
        let answer = frames.opening_message(clock::now() + HANDSHAKE_TIMEOUT);
        // The attempt is used up on the listener's side, too, so a code is not tried again after the path broke.
        let answer = answer.map_err(|error| match self {
            Contact::Code(_) if error.is_of_the_path() => {
                TransferError::CodeCut(channel.peer().to_string())
            }
            _ => error,
        });
        let (early_bytes, ends_with_program) = match answer? {
            Message::Welcome { proof, early_bytes, ends_with_program }
                if session.is_listener_proof(&proof) =>
            {
                (if receives { accepted_bytes } else { early_bytes }, ends_with_program)
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
        // The code authenticates the certificate, because both proofs are bound to the connection.
        let further = match (self, channel.peer_key()) {
            (Contact::Code(at), Some(key)) => Some(Ticket {
                host: at.host.clone(),
                port: at.port,
                fingerprint: key.0,
                proof: TicketProof::Secret { secret: session.further_secret(), expires: Time::MAX },
            }),
            _ => None,
        };
        let link = Link { channel, session, frames, early_bytes };
        Ok(Greeted { link, further, ends_with_program })
    }
}

/// A connection to the peer that printed `ticket`, if it answers before `deadline`.
pub(crate) fn reach(ticket: &Ticket, deadline: Time) -> Option<Channel> {
    let socket = connect(&ticket.host, ticket.port).ok()?;
    Channel::connect(socket, Some(ticket.fingerprint), None, deadline).ok()
}

/// Connects to the first of the host's addresses that answers. Attempts overlap (RFC 8305).
fn connect(host: &TicketHost, port: u16) -> Result<TcpStream> {
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

/// Interleaves the addresses of the two families, beginning with the resolver's first family (RFC 8305, section 4).
fn in_turns(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let Some(is_first_v6) = addresses.first().map(SocketAddr::is_ipv6) else { return addresses };
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == is_first_v6);
    let longer = first.len().max(second.len());
    let pick = |i: usize| [first.get(i), second.get(i)];
    (0..longer).flat_map(pick).flatten().copied().collect()
}

pub(crate) fn set_congestion(socket: &TcpStream, name: &str) -> Result<()> {
    named_congestion(name, tcp::options::set_congestion(socket, name))
}

/// Converts the `result` of setting a congestion control of this name.
pub(crate) fn named_congestion(name: &str, result: std::io::Result<()>) -> Result<()> {
    result.map_err(|source| {
        let list = |names: std::io::Result<Vec<String>>| names.unwrap_or_default().join(", ");
        let hint = if source.kind() == std::io::ErrorKind::PermissionDenied {
            format!(
                "without root, this host allows {}; root can add others to net.ipv4.tcp_allowed_congestion_control",
                list(sysctl::allowed_congestion_controls())
            )
        } else {
            format!("this kernel offers {}", list(sysctl::available_congestion_controls()))
        };
        TransferError::Congestion { name: name.to_owned(), by_peer: false, source, hint }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn address_families_alternate_and_no_address_is_lost() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let all = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"].map(address);
        let turns = in_turns(all.to_vec());
        assert_eq!(turns, ["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"].map(address));
        assert!(in_turns(Vec::new()).is_empty());
    }

    #[test]
    fn a_failed_further_connection_is_retried_a_limited_number_of_times() {
        let (over, tries) = (EndSignal::default(), AtomicU32::new(0));
        let dial = || {
            tries.fetch_add(1, Ordering::AcqRel);
            Err(TransferError::Interrupted)
        };
        let (_arrivals, arriving) = crossbeam_channel::unbounded();
        let further = FurtherLinks { arriving, dial: Some(&dial) };
        thread::scope(|scope| {
            scope.spawn(|| further.run(&over, || 2, |_| {}));
            clock::sleep_until(clock::now() + REDIAL_PAUSE * 3);
            over.set();
        });
        // Immediately and after a pause: as many attempts as connections wanted.
        assert_eq!(tries.into_inner(), 2);
    }
}
