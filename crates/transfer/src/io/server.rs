//! The server, which admits senders and receives many files at once.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sweetspot_linux::tcp::ClampMethod;
use sweetspot_linux::{clock, interfaces};
use sweetspot_protocol::{Message, Secret, Ticket, TicketHost, TransferSummary};
use sweetspot_sizing::{KnownPath, Sizing};
use sweetspot_units::{Bytes, Duration, Time};

use super::admission::{self, ServerConfig};
use super::channel::lock;
use super::connection_table::ConnectionTable;
use super::identity::Identity;
use super::receiver;
use super::temp_file::{self, TempFile};
use super::udp_demux::UdpDemux;
use crate::TransferError;
use crate::observer::TransferObserver;

/// The pause after a failed accept, and the time limit for waking the accept loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The options of a [`Server`].
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The directory in which files are stored.
    pub directory: PathBuf,
    /// The address on which to listen, TCP and UDP.
    pub listen: SocketAddr,
    /// The host and port that the ticket names, if they differ from `listen`.
    pub advertise: Option<(TicketHost, Option<u16>)>,
    /// Whether to stop after one admitted transfer.
    pub once: bool,
    /// The sizing to use, whatever the sender asks for; `None`: the sender's.
    pub sizing: Option<Sizing>,
    /// The congestion control that the sender must use; `None`: the sender's.
    pub congestion: Option<String>,
    /// The path's rate and round trip, if known.
    pub path: Option<KnownPath>,
    /// Whether to overwrite existing files.
    pub overwrite: bool,
    /// Whether to probe the path while receiving.
    pub probes: bool,
    /// How long the ticket is valid.
    pub lifetime: Duration,
}

/// A receiver that listens for senders.
pub struct Server {
    listener: TcpListener,
    udp_demux: UdpDemux,
    connection_table: ConnectionTable,
    config: ServerConfig,
    ticket: Ticket,
    once: bool,
}

/// Watches a server.
pub trait ServerObserver: Sync {
    /// A sender was admitted. Returns the observer of its transfer, which is number `number`, from 1.
    fn admitted(&self, number: u64, peer: SocketAddr) -> Box<dyn TransferObserver>;
    /// Transfer `number` ended.
    fn ended(&self, number: u64, result: &Result<TransferSummary, TransferError>);
    /// A connection was refused.
    fn turned_away(&self, error: &TransferError);
}

impl Server {
    /// Starts to listen. Removes what interrupted transfers left in the directory, and finds out how this kernel's window
    /// is limited.
    pub fn bind(options: ServeOptions) -> Result<Server, TransferError> {
        let directory = options.directory;
        let wrong = |source| TransferError::Directory { path: directory.clone(), source };
        if !std::fs::metadata(&directory).map_err(wrong)?.is_dir() {
            return Err(wrong(std::io::ErrorKind::NotADirectory.into()));
        }
        temp_file::sweep(&directory).map_err(wrong)?;
        // Tried now, so that a directory that cannot be written to is known before a sender is.
        drop(TempFile::create(&directory, Bytes::ZERO)?);
        let cannot = |source| TransferError::Listen { address: options.listen.to_string(), source };
        let (listener, udp_demux) = bind_both(options.listen).map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        let identity = Identity::new().map_err(|reason| TransferError::System {
            what: "preparing TLS",
            source: std::io::Error::other(reason),
        })?;
        let secret = draw_secret()?;
        let seconds = (clock::wall() + options.lifetime).as_nanos() / 1_000_000_000;
        let (host, port) = match options.advertise {
            Some((host, port)) => (host, port.unwrap_or(bound.port())),
            None => (TicketHost::Address(reachable(bound.ip())), bound.port()),
        };
        let ticket = Ticket {
            host,
            port,
            fingerprint: identity.fingerprint,
            secret,
            expires: Time::from_nanos(seconds * 1_000_000_000),
        };
        let config = ServerConfig {
            identity,
            secret: ticket.secret.clone(),
            expires: ticket.expires,
            directory,
            overwrite: options.overwrite,
            sizing: options.sizing,
            congestion: options.congestion,
            path: options.path,
            probes: options.probes,
            clamp_method: ClampMethod::find()
                .map_err(TransferError::system("testing the receive window"))?,
        };
        let (connection_table, once) = (ConnectionTable::default(), options.once);
        Ok(Server { listener, udp_demux, connection_table, config, ticket, once })
    }

    /// The ticket that senders need.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// The address on which the server listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// How this kernel's window is limited.
    pub fn clamp_method(&self) -> ClampMethod {
        self.config.clamp_method
    }

    /// Serves until [`Server::stop`]. With `once` it returns the result of the one admitted transfer instead.
    pub fn run(
        &self,
        reception: &dyn ServerObserver,
    ) -> Result<Option<TransferSummary>, TransferError> {
        let admitted = AtomicU64::new(0);
        let result = Mutex::new(None);
        thread::scope(|scope| {
            scope.spawn(|| self.udp_demux.run());
            while !self.connection_table.is_closing() {
                let (socket, peer) = match self.listener.accept() {
                    Ok(accepted) => accepted,
                    Err(_) => {
                        // Out of descriptors, as a rule: some will be free again later.
                        clock::sleep_until(clock::now() + ACCEPT_PAUSE);
                        continue;
                    }
                };
                let start = clock::now();
                let Some(number) = self.connection_table.enter(&socket) else {
                    if !self.connection_table.is_closing() {
                        reception.turned_away(&TransferError::Crowded(peer.to_string()));
                    }
                    continue;
                };
                let (admitted, result) = (&admitted, &result);
                scope.spawn(move || {
                    let ended = self.serve_connection(socket, start, admitted, reception);
                    self.connection_table.leave(number);
                    if let Some(ended) = ended.filter(|_| self.once) {
                        lock(result).get_or_insert(ended.map(Some));
                        self.stop();
                    }
                });
            }
            self.udp_demux.shut_down();
        });
        lock(&result).take().unwrap_or(Err(TransferError::Interrupted))
    }

    /// Ends all transfers and makes [`Server::run`] return. Unfinished files are removed.
    pub fn stop(&self) {
        self.connection_table.close();
        // Wakes the loop out of accept.
        let _ = TcpStream::connect_timeout(&self.own_address(), ACCEPT_PAUSE.into());
    }

    /// Serves one connection. Returns the result of its transfer; `None` if it was refused.
    fn serve_connection(
        &self,
        socket: TcpStream,
        start: Time,
        admitted: &AtomicU64,
        reception: &dyn ServerObserver,
    ) -> Option<Result<TransferSummary, TransferError>> {
        let handshake = admission::admit(&self.config, socket);
        self.connection_table.authenticated();
        let sender = match handshake {
            Ok(sender) => sender,
            Err(_) if self.connection_table.is_closing() => return None,
            Err(error) => {
                reception.turned_away(&error);
                return None;
            }
        };
        let number = admitted.fetch_add(1, Ordering::AcqRel) + 1;
        if self.once && number > 1 {
            let reason = "the receiver takes one transfer only, and has it".to_owned();
            sender.channel.hang_up(&Message::Refuse { reason });
            let peer = sender.channel.peer().to_string();
            reception.turned_away(&TransferError::Taken(peer));
            return None;
        }
        let mut observer = reception.admitted(number, sender.channel.peer());
        let (config, board) = (&self.config, &self.udp_demux);
        let received = receiver::receive(config, board, sender, start, observer.as_mut());
        drop(observer);
        // A transfer that ends because the server closes did not fail by itself.
        let interrupted = received.is_err() && self.connection_table.is_closing();
        let result = if interrupted { Err(TransferError::Interrupted) } else { received };
        reception.ended(number, &result);
        Some(result)
    }

    fn own_address(&self) -> SocketAddr {
        let bound = self.listener.local_addr().unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
        let ip = if bound.ip().is_unspecified() { loopback(bound.ip()) } else { bound.ip() };
        SocketAddr::new(ip, bound.port())
    }
}

/// Binds TCP and UDP to the same port. For port 0 it finds one that is free for both.
fn bind_both(address: SocketAddr) -> std::io::Result<(TcpListener, UdpDemux)> {
    const MAX_ATTEMPTS: usize = 20;
    let mut attempt = 1;
    loop {
        let listener = TcpListener::bind(address)?;
        match UdpDemux::new(listener.local_addr()?) {
            Ok(udp_demux) => return Ok((listener, udp_demux)),
            Err(_) if address.port() == 0 && attempt < MAX_ATTEMPTS => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

fn draw_secret() -> Result<Secret, TransferError> {
    let mut secret = [0; 16];
    match getrandom::fill(&mut secret) {
        Ok(()) => Ok(Secret(secret)),
        Err(e) => Err(TransferError::System {
            what: "drawing a secret",
            source: std::io::Error::other(e.to_string()),
        }),
    }
}

fn loopback(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
    }
}

/// The address by which others reach a socket bound to `ip`: `ip` itself, or for the wildcard the source address of the
/// default route, or this host's first address.
fn reachable(ip: IpAddr) -> IpAddr {
    if !ip.is_unspecified() {
        return ip;
    }
    // Connecting a UDP socket sends nothing; it only looks up the route. The addresses are from
    // the documentation ranges (RFC 5737, RFC 3849): only the default route matches them.
    let probe: SocketAddr = match ip {
        IpAddr::V4(_) => ([192, 0, 2, 1], 9).into(),
        IpAddr::V6(_) => ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 9).into(),
    };
    let routed = std::net::UdpSocket::bind(SocketAddr::new(ip, 0)).and_then(|socket| {
        socket.connect(probe)?;
        socket.local_addr()
    });
    match routed {
        Ok(address) if !address.ip().is_unspecified() => address.ip(),
        _ => {
            let own = interfaces::addresses().unwrap_or_default();
            let like = own.into_iter().find(|own| own.is_ipv4() == ip.is_ipv4());
            like.unwrap_or(loopback(ip))
        }
    }
}
