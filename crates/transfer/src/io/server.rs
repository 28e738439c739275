//! Listens, admits, and receives many files at once.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sweetspot_linux::clock;
use sweetspot_linux::tcp::Recipe;
use sweetspot_sizing::{KnownPath, Sizing};
use sweetspot_units::{Duration, Time};

use super::admission::{self, House};
use super::channel::lock;
use super::identity::Identity;
use super::switchboard::Switchboard;
use super::{partial, receiver};
use crate::TransferError;
use crate::observer::Observer;
use crate::outcome::Outcome;
use crate::ticket::{Host, Secret, Ticket};

/// Strangers that may be at the door at once: each costs a thread and a TLS handshake.
const STRANGERS: usize = 32;

/// What a server is to do.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Where files go.
    pub directory: PathBuf,
    /// Where to listen, TCP and UDP.
    pub listen: SocketAddr,
    /// The host and port that the ticket names, where they differ from `listen`.
    pub advertise: Option<(Host, Option<u16>)>,
    /// End after one admitted transfer.
    pub once: bool,
    /// This sizing, whatever the sender asks for.
    pub sizing: Option<Sizing>,
    /// This congestion control at the sender, whatever it chose.
    pub congestion: Option<String>,
    /// The path, where it is known.
    pub path: Option<KnownPath>,
    /// Overwrite existing files.
    pub overwrite: bool,
    /// Probe the path while receiving.
    pub probes: bool,
    /// How long the ticket is taken.
    pub lifetime: Duration,
}

/// A listening receiver.
pub struct Server {
    listener: TcpListener,
    switchboard: Switchboard,
    house: House,
    ticket: Ticket,
    once: bool,
}

/// Watches a server.
pub trait Reception: Sync {
    /// An observer for a transfer whose sender has just been admitted; the number counts them.
    fn admitted(&self, number: u64, peer: SocketAddr) -> Box<dyn Observer>;
    /// That transfer ended.
    fn ended(&self, number: u64, result: &Result<Outcome, TransferError>);
    /// Somebody was turned away at the door.
    fn turned_away(&self, error: &TransferError);
}

impl Server {
    /// Listens, sweeps the directory of what dead transfers left, and finds out how this kernel's
    /// window is steered.
    pub fn bind(options: ServeOptions) -> Result<Server, TransferError> {
        let directory = options.directory;
        let wrong = |source| TransferError::Directory { path: directory.clone(), source };
        if !std::fs::metadata(&directory).map_err(wrong)?.is_dir() {
            return Err(wrong(std::io::ErrorKind::NotADirectory.into()));
        }
        partial::sweep(&directory).map_err(wrong)?;
        let cannot = |source| TransferError::Listen { address: options.listen.to_string(), source };
        let (listener, switchboard) = bind_both(options.listen).map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        let identity = Identity::new().map_err(|reason| TransferError::System {
            what: "preparing TLS",
            source: std::io::Error::other(reason),
        })?;
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).map_err(|e| TransferError::System {
            what: "drawing a secret",
            source: std::io::Error::other(e.to_string()),
        })?;
        let recipe = Recipe::find().map_err(TransferError::system("testing the receive window"))?;
        let seconds = (clock::wall() + options.lifetime).as_nanos() / 1_000_000_000;
        let expires = Time::from_nanos(seconds * 1_000_000_000);
        let (host, port) = match options.advertise {
            Some((host, port)) => (host, port.unwrap_or(bound.port())),
            None => (Host::Address(reachable(bound.ip())), bound.port()),
        };
        let ticket = Ticket {
            host,
            port,
            fingerprint: identity.fingerprint,
            secret: Secret(secret),
            expires,
        };
        let house = House {
            identity,
            secret: Secret(secret),
            expires,
            directory,
            overwrite: options.overwrite,
            sizing: options.sizing,
            congestion: options.congestion,
            path: options.path,
            probes: options.probes,
            recipe: recipe.unwrap_or(Recipe::ClampAutotuned),
        };
        Ok(Server { listener, switchboard, house, ticket, once: options.once })
    }

    /// What a sender needs.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// How this kernel's window is steered.
    pub fn recipe(&self) -> Recipe {
        self.house.recipe
    }

    /// Serves for ever, or, with `once`, until one admitted transfer has ended, whose result this
    /// then is.
    pub fn run(&self, reception: &dyn Reception) -> Result<Option<Outcome>, TransferError> {
        let (strangers, admitted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let once = std::sync::Mutex::new(None);
        thread::scope(|scope| {
            scope.spawn(|| self.switchboard.run());
            loop {
                let accepted = self.listener.accept();
                if let Some(result) = lock(&once).take() {
                    self.switchboard.close();
                    return result;
                }
                let Ok((socket, peer)) = accepted else { continue };
                let start = clock::now();
                if strangers.fetch_add(1, Ordering::AcqRel) >= STRANGERS {
                    strangers.fetch_sub(1, Ordering::AcqRel);
                    continue;
                }
                let guest = Guest { socket, peer, start };
                let (strangers, admitted, once) = (&strangers, &admitted, &once);
                scope.spawn(move || {
                    let result = self.entertain(guest, strangers, admitted, reception);
                    if let Some(result) = result.filter(|_| self.once) {
                        *lock(once) = Some(result.map(Some));
                        // Wakes the loop out of accept.
                        let _ = TcpStream::connect(self.listener_address());
                    }
                });
            }
        })
    }

    /// One connection from its first packet to its end; `None` if it was turned away.
    fn entertain(
        &self,
        guest: Guest,
        strangers: &AtomicUsize,
        admitted: &AtomicUsize,
        reception: &dyn Reception,
    ) -> Option<Result<Outcome, TransferError>> {
        let opening = admission::admit(&self.house, guest.socket);
        strangers.fetch_sub(1, Ordering::AcqRel);
        let sender = match opening {
            Ok(sender) => sender,
            Err(error) => {
                reception.turned_away(&error);
                return None;
            }
        };
        let number = admitted.fetch_add(1, Ordering::AcqRel) as u64 + 1;
        let mut observer = reception.admitted(number, guest.peer);
        let (house, board) = (&self.house, &self.switchboard);
        let result = receiver::receive(house, board, sender, guest.start, observer.as_mut());
        drop(observer);
        reception.ended(number, &result);
        Some(result)
    }

    fn listener_address(&self) -> SocketAddr {
        let bound = self.listener.local_addr().unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
        let ip = if bound.ip().is_unspecified() { loopback(bound.ip()) } else { bound.ip() };
        SocketAddr::new(ip, bound.port())
    }
}

struct Guest {
    socket: TcpStream,
    peer: SocketAddr,
    start: Time,
}

/// TCP and UDP on the same port. Where any port will do, one that is free for both is found.
fn bind_both(address: SocketAddr) -> std::io::Result<(TcpListener, Switchboard)> {
    const ATTEMPTS: usize = 20;
    let mut attempt = 1;
    loop {
        let listener = TcpListener::bind(address)?;
        match Switchboard::new(listener.local_addr()?) {
            Ok(switchboard) => return Ok((listener, switchboard)),
            Err(_) if address.port() == 0 && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

fn loopback(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
    }
}

/// The address by which others reach a socket bound to `ip`: itself, or for the wildcard the one
/// that this host would send from.
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
        _ => loopback(ip),
    }
}
