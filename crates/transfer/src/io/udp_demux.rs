//! The server's UDP port, which finds out the UDP address of each transfer's sender.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use sweetspot_linux::event_fd::{EventFd, wait_readable};
use sweetspot_linux::udp::Udp;
use sweetspot_protocol::probe::{PacketAuthenticator, ProbePacket};
use sweetspot_units::Time;

use super::channel::lock;

/// A UDP socket for senders whose address is not known yet.
pub(crate) struct UdpDemux {
    socket: Udp,
    registrations: Mutex<Registrations>,
    closing: EventFd,
    closed: AtomicBool,
}

#[derive(Default)]
struct Registrations {
    open: Vec<Arc<Registration>>,
    /// Datagrams that no registration was open for: a sender's first one may overtake its hello.
    early: VecDeque<(Vec<u8>, SocketAddr)>,
}

/// How many early datagrams are kept, and the longest of them, bytes.
const MAX_EARLY_DATAGRAMS: usize = 64;
const MAX_EARLY_BYTES: usize = 128;

/// A transfer that waits for its sender's UDP address.
pub(crate) struct Registration {
    id: [u8; 4],
    authenticator: PacketAuthenticator,
    peer_address: Mutex<Option<SocketAddr>>,
    /// The newest punch so far: an older one was replayed.
    newest: AtomicU32,
    /// Signalled when the sender's address is known.
    pub event_fd: EventFd,
}

/// A registration for as long as its transfer.
pub(crate) struct Registered<'a> {
    demux: &'a UdpDemux,
    pub registration: Arc<Registration>,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let mut registrations = lock(&self.demux.registrations);
        registrations.open.retain(|other| !Arc::ptr_eq(other, &self.registration));
    }
}

impl UdpDemux {
    pub fn new(address: SocketAddr) -> std::io::Result<UdpDemux> {
        Ok(UdpDemux {
            socket: Udp::bind_shared(address)?,
            registrations: Mutex::default(),
            closing: EventFd::new()?,
            closed: false.into(),
        })
    }

    /// A registration for the transfer with this authenticator.
    pub fn register(&self, authenticator: PacketAuthenticator) -> std::io::Result<Registered<'_>> {
        let registration = Registration {
            id: authenticator.id(),
            authenticator,
            peer_address: Mutex::default(),
            newest: AtomicU32::new(0),
            event_fd: EventFd::new()?,
        };
        let registration = Arc::new(registration);
        let mut registrations = lock(&self.registrations);
        registrations.early.iter().for_each(|(datagram, from)| registration.push(datagram, *from));
        registrations.open.push(Arc::clone(&registration));
        Ok(Registered { demux: self, registration })
    }

    /// Listens until [`UdpDemux::shut_down`].
    pub fn run(&self) {
        let mut datagram = [0; 2048];
        while !self.closed.load(Ordering::Acquire) {
            let sources = [self.socket.as_fd(), self.closing.as_fd()];
            if wait_readable(&sources, Time::MAX).is_err() {
                return;
            }
            // What cannot be received is lost, as datagrams may be.
            while let Ok(Some(arrival)) = self.socket.receive(&mut datagram) {
                let datagram = &datagram[..arrival.length.min(datagram.len())];
                self.connect(datagram, arrival.from);
            }
        }
    }

    /// Ends [`UdpDemux::run`].
    pub fn shut_down(&self) {
        self.closed.store(true, Ordering::Release);
        self.closing.signal();
    }

    fn connect(&self, datagram: &[u8], from: SocketAddr) {
        let Some(id) = PacketAuthenticator::claimed_id(datagram) else { return };
        let mut registrations = lock(&self.registrations);
        // Identities are short: two registrations may have the same, and the authenticator tells.
        let mut claimed =
            registrations.open.iter().filter(|registration| registration.id == id).peekable();
        if claimed.peek().is_some() {
            claimed.for_each(|registration| registration.push(datagram, from));
        } else if datagram.len() <= MAX_EARLY_BYTES {
            if registrations.early.len() == MAX_EARLY_DATAGRAMS {
                registrations.early.pop_front();
            }
            registrations.early.push_back((datagram.to_vec(), from));
        }
    }
}

impl Registration {
    /// Notes the address if the datagram is an authenticated punch of this transfer's sender.
    fn push(&self, datagram: &[u8], from: SocketAddr) {
        if let Some(ProbePacket::Punch { sequence }) = self.authenticator.open(datagram)
            && self.newest.fetch_max(sequence, Ordering::AcqRel) < sequence
        {
            *lock(&self.peer_address) = Some(from);
            self.event_fd.signal();
        }
    }

    /// The sender's address, if it sent a punch since the last call.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.event_fd.clear();
        lock(&self.peer_address).take()
    }
}
