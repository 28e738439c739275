//! Datagrams between a socket's library and the peer's.

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
/// Maximum number of datagrams read at once: two of the longest trains.
const MAX_DATAGRAMS: usize = 1024;
/// The same maximum while the guest's port is unknown and the datagrams may be anyone's.
const MAX_STRANGERS: usize = 16;

/// The datagram link of a socket that is sized from both ends.
pub(crate) struct SocketLink {
    invitation: Invitation,
    end: Inviting,
    open: Option<Open>,
    /// Whether the socket is sized from one end only, because the other did not answer.
    has_fallen_back: bool,
    /// Unhandled datagrams, with their arrival times.
    inbox: Vec<(Time, Vec<u8>)>,
    /// The path's controller, while the socket is resting.
    pub group: Option<Box<PathGroup>>,
    /// The host's port, until the connection's ends are known.
    port: Option<Udp>,
    starved: bool,
}

struct Open {
    udp: Udp,
    /// The other end of the connection, the only host with which datagrams are exchanged.
    peer: IpAddr,
    /// Whether the peer's port is known.
    is_connected: bool,
    link: PeerLink,
}

impl SocketLink {
    /// The link of the inviting end, with its port.
    pub fn host(invitation: Invitation, port: Udp) -> SocketLink {
        SocketLink { port: Some(port), end: Inviting::Host, ..SocketLink::guest(invitation) }
    }

    /// The link of the joining end.
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

    /// Handles the open connection between these ends. If no port can be opened, the kernel's measurements must suffice.
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

    /// Whether the peer has answered.
    pub fn is_up(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.link.is_up())
    }

    /// Whether the peer answers, or still may.
    pub fn is_helping(&self) -> bool {
        !self.has_fallen_back
    }

    /// Whether it has just become certain that the peer does not answer.
    pub fn just_failed(&self) -> bool {
        let now = clock::now();
        !self.has_fallen_back && self.open.as_ref().is_some_and(|open| open.link.has_failed(now))
    }

    /// Sizes the socket from one end only from now on. The peer still gets answers.
    pub fn fall_back(&mut self) {
        self.has_fallen_back = true;
    }

    /// The pacing rate and congestion control that the peer asks for.
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

    /// Handles the datagrams read since the last call. `group` is the socket's; `now` is later than all arrivals.
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
                // `steering` reads it from the link.
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

    /// Sends a request to the peer.
    pub fn send_request(&mut self, request: &SenderRequest) {
        if let Some(open) = &mut self.open {
            open.link.handle_request(clock::now(), request);
            open.transmit();
        }
    }

    /// Sends the hole punches and repetitions that are due.
    pub fn handle_timeout(&mut self) {
        if let Some(open) = &mut self.open {
            open.link.handle_timeout(clock::now());
            open.transmit();
        }
    }

    /// Withdraws the receiver's requests.
    pub fn release(&mut self) {
        if let Some(open) = &mut self.open {
            open.link.release(clock::now());
            open.transmit();
        }
    }
}

impl Open {
    /// Whether a datagram comes from the peer. The first authentic one reveals the peer's port. Its source address must be the
    /// peer's: it can be forged, and no peer may direct this end's datagrams at others. (A NAT uses one address for all of a
    /// host's traffic: RFC 4787, REQ-2.)
    fn admits(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        if from.ip().to_canonical() != self.peer || !self.link.is_genuine(datagram) {
            return false;
        }
        if !self.is_connected {
            self.is_connected = self.udp.connect(from).is_ok();
        }
        self.is_connected
    }

    /// Sends the waiting datagrams. Returns whether there were any. A datagram that cannot be sent counts as lost.
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
