//! A socket's datagrams to and from the peer's library.

use std::net::{IpAddr, SocketAddr};

use sweetspot_control::{PathGroup, PeerLink, Received, SenderRequest, Transmit};
use sweetspot_linux::clock;
use sweetspot_linux::tcp::{Info, sender_report};
use sweetspot_linux::udp::Udp;
use sweetspot_protocol::probe::Steering;
use sweetspot_protocol::{Invitation, Inviting};
use sweetspot_units::{Bytes, Time};

/// The longest datagram, bytes: a jumbo frame.
const MAX_DATAGRAM_BYTES: usize = 9216;
/// The most datagrams that are read at once: two of the longest trains.
const MAX_DATAGRAMS: usize = 1024;
/// The same of strangers, while the guest's port is not known.
const MAX_STRANGERS: usize = 16;

/// The datagrams of a socket with both ends.
pub(crate) struct SocketLink {
    invitation: Invitation,
    end: Inviting,
    open: Option<Open>,
    /// The socket is sized by one end, because the other did not answer.
    has_fallen_back: bool,
    /// Datagrams that are not handled yet, with their arrival.
    inbox: Vec<(Time, Vec<u8>)>,
    /// The controller of a socket that rests.
    pub group: Option<Box<PathGroup>>,
    /// A host's port, before the connection's ends are known.
    port: Option<Udp>,
    starved: bool,
}

struct Open {
    udp: Udp,
    /// The other end of the connection: datagrams come from there, and go there, alone.
    peer: IpAddr,
    /// Whether the peer's port is known.
    is_connected: bool,
    link: PeerLink,
}

impl SocketLink {
    /// The link of the end that invites, with its port.
    pub fn host(invitation: Invitation, port: Udp) -> SocketLink {
        SocketLink { port: Some(port), end: Inviting::Host, ..SocketLink::guest(invitation) }
    }

    /// The link of the end that joins.
    pub fn guest(invitation: Invitation) -> SocketLink {
        SocketLink {
            invitation,
            end: Inviting::Guest,
            open: None,
            has_fallen_back: false,
            inbox: Vec::new(),
            group: None,
            port: None,
            starved: false,
        }
    }

    /// The connection is open, with these ends. Without a port there is no help, and the kernel's measurements do.
    pub fn open(&mut self, local: IpAddr, peer: IpAddr) {
        let (udp, is_connected) = match self.port.take() {
            Some(port) => (port, false),
            None => {
                let to = SocketAddr::new(peer, self.invitation.port);
                let bound = Udp::bind_at(local).and_then(|udp| udp.connect(to).map(|()| udp));
                let Ok(udp) = bound else {
                    self.has_fallen_back = true;
                    return;
                };
                (udp, true)
            }
        };
        let link = PeerLink::new(&self.invitation, self.end, headers(peer));
        self.open = Some(Open { udp, peer: peer.to_canonical(), is_connected, link });
        if self.end == Inviting::Guest {
            self.handle_timeout();
        }
    }

    /// Whether the peer answers.
    pub fn is_up(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.link.is_up())
    }

    /// Whether the peer answers, or may yet.
    pub fn is_helping(&self) -> bool {
        !self.has_fallen_back
    }

    /// Whether it is clear by now that the peer does not answer.
    pub fn just_failed(&self) -> bool {
        let now = clock::now();
        !self.has_fallen_back && self.open.as_ref().is_some_and(|open| open.link.has_failed(now))
    }

    /// The socket is sized by one end from now on. The peer is still answered.
    pub fn fall_back(&mut self) {
        self.has_fallen_back = true;
    }

    /// How the peer asks this end to send.
    pub fn steering(&self, now: Time) -> Option<Steering> {
        self.open.as_ref()?.link.steering(now)
    }

    /// Reads the datagrams that have arrived.
    pub fn receive(&mut self) {
        let Some(open) = &mut self.open else { return };
        let mut datagram = [0; MAX_DATAGRAM_BYTES];
        let max = if open.is_connected { MAX_DATAGRAMS } else { MAX_STRANGERS };
        for _ in 0..max {
            // A datagram that cannot be received counts as lost.
            let Ok(Some(arrival)) = open.udp.receive(&mut datagram) else { return };
            let Some(bytes) = datagram.get(..arrival.length) else { continue };
            if open.admits(arrival.from, bytes) {
                self.inbox.push((arrival.at, bytes.to_vec()));
            }
        }
    }

    /// Handles the datagrams read since the last call. `group` is the socket's; it is the caller's `now`, and later than all arrivals.
    pub fn handle(&mut self, now: Time, info: &Info, group: &mut PathGroup) {
        let Some(open) = &mut self.open else { return };
        self.starved |= info.delivery_rate_app_limited;
        for (arrived, datagram) in std::mem::take(&mut self.inbox) {
            let report = sender_report(info, self.starved);
            let at = clock::now();
            match open.link.handle_datagram(at, arrived, &datagram, &report, info.bytes_acked) {
                Some(Received::Answer(answer)) => group.handle_answer(now, arrived, &answer),
                Some(Received::Train(packet, size)) => {
                    group.handle_train_packet(now, arrived, size, packet);
                }
                // It is read from the link.
                Some(Received::Steer(_)) | None => {}
            }
            if open.transmit() {
                self.starved = false;
            }
        }
        if open.link.is_up() {
            group.handle_reachable();
        }
    }

    /// Asks the peer for something.
    pub fn ask(&mut self, request: &SenderRequest) {
        if let Some(open) = &mut self.open {
            open.link.handle_request(clock::now(), request);
            open.transmit();
        }
    }

    /// Sends the punches and repeats that are due.
    pub fn handle_timeout(&mut self) {
        if let Some(open) = &mut self.open {
            open.link.handle_timeout(clock::now());
            open.transmit();
        }
    }

    /// The receiver asks for nothing from now on.
    pub fn release(&mut self) {
        if let Some(open) = &mut self.open {
            open.link.release(clock::now());
            open.transmit();
        }
    }
}

impl Open {
    /// Whether a datagram is the peer's. The first genuine one tells its port. A datagram's source can be forged, so that no
    /// peer directs this end's datagrams at others. (A NAT uses one address for all of a host's traffic: RFC 4787, REQ-2.)
    fn admits(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        if from.ip().to_canonical() != self.peer || !self.link.is_genuine(datagram) {
            return false;
        }
        if !self.is_connected {
            self.is_connected = self.udp.connect(from).is_ok();
        }
        self.is_connected
    }

    /// Sends the waiting datagrams; whether there were any. A datagram that cannot leave is one lost.
    fn transmit(&mut self) -> bool {
        let mut has_sent = false;
        while let Some(transmit) = self.link.poll_transmit() {
            if self.is_connected {
                has_sent = true;
                let _ = match transmit {
                    Transmit::One(datagram) => self.udp.send(&datagram),
                    Transmit::Train(datagrams) => self.udp.send_burst(&datagrams).map(|_| ()),
                };
            }
        }
        has_sent
    }
}

fn headers(peer: IpAddr) -> Bytes {
    Bytes::new(if peer.to_canonical().is_ipv4() { 28 } else { 48 })
}
