//! The server's UDP port, which learns the UDP address of each transfer's sender.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use sweetspot_linux::event_fd::{EventFd, wait_readable};
use sweetspot_linux::udp::Udp;
use sweetspot_protocol::probe::{PacketAuthenticator, ProbePacket};
use sweetspot_units::Time;

use crate::limits::{MAX_EARLY_BYTES, MAX_EARLY_DATAGRAMS};
use crate::lock::lock;

/// A UDP socket for senders with a still unknown address.
pub(crate) struct UdpDemux {
    socket: Udp,
    registrations: Mutex<Registrations>,
    closing: EventFd,
    closed: AtomicBool,
}

#[derive(Default)]
struct Registrations {
    open: Vec<Arc<Registration>>,
    /// Datagrams without a registration: a sender's first one may arrive before its hello.
    early: VecDeque<(Vec<u8>, SocketAddr)>,
}

/// A transfer that waits for its sender's UDP address.
pub(crate) struct Registration {
    id: [u8; 4],
    /// The host at the other end of the transfer's TCP connection, the only host to which datagrams are sent.
    host: IpAddr,
    authenticator: PacketAuthenticator,
    peer_address: Mutex<Option<SocketAddr>>,
    /// The number of the newest punch. Older punches are replays.
    newest: AtomicU32,
    /// Signalled when the sender's address is known.
    pub event_fd: EventFd,
}

/// A registration, removed when it is dropped.
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

    /// Registers a transfer with its authenticator. `host` is the source of its TCP connection.
    pub fn register(
        &self,
        authenticator: PacketAuthenticator,
        host: IpAddr,
    ) -> std::io::Result<Registered<'_>> {
        let registration = Registration {
            id: authenticator.id(),
            host: host.to_canonical(),
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
            // A datagram that cannot be received counts as lost.
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
        // Identifiers are short, so two registrations may share one; the authenticator decides.
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
    /// Notes the source address if the datagram is a new, authenticated punch of this transfer's sender, and comes from the
    /// host of its connection. A datagram's source can be forged: a peer must not direct this end's traffic at others. (A NAT
    /// uses one address for all of a host's traffic: RFC 4787, REQ-2.)
    fn push(&self, datagram: &[u8], from: SocketAddr) {
        if from.ip().to_canonical() != self.host {
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_protocol::{Secret, Session};
    use sweetspot_units::Bytes;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn only_a_new_punch_from_the_peers_host_moves_the_port() {
        let demux = UdpDemux::new(address("127.0.0.1:0")).unwrap();
        let session = |n| Session::new(Some(&Secret([n; 16])), &[n; 32]);
        let ours = || PacketAuthenticator::new(&session(7));
        let punch = |by: &PacketAuthenticator, sequence| {
            by.close(&ProbePacket::Punch { sequence }, Bytes::new(60))
        };
        // A victim's address, before and after the hello.
        demux.connect(&punch(&ours(), 9), address("198.51.100.1:53"));
        let host = address("[::ffff:192.0.2.7]:0").ip();
        let registered = demux.register(ours(), host).unwrap();
        let registration = &registered.registration;
        demux.connect(&punch(&ours(), 10), address("198.51.100.1:53"));
        demux.connect(&punch(&ours(), 11), address("[2001:db8::1]:53"));
        assert_eq!(registration.peer_address(), None, "a forged source");
        demux.connect(&punch(&ours(), 12), address("192.0.2.7:4000"));
        assert_eq!(registration.peer_address(), Some(address("192.0.2.7:4000")));
        // A replay from another port, and a punch without the key.
        demux.connect(&punch(&ours(), 12), address("192.0.2.7:4001"));
        demux
            .connect(&punch(&PacketAuthenticator::new(&session(8)), 13), address("192.0.2.7:4002"));
        assert_eq!(registration.peer_address(), None, "nothing new");
        // The NAT chose another port.
        demux.connect(&punch(&ours(), 13), address("[::ffff:192.0.2.7]:4003"));
        assert_eq!(registration.peer_address(), Some(address("[::ffff:192.0.2.7]:4003")));
    }
}
