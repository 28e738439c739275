use std::collections::VecDeque;

use sweetspot_protocol::probe::{
    PacketAuthenticator, ProbeAnswer, ProbePacket, Reflector, Steering, TrainBudget, TrainPacket,
};
use sweetspot_protocol::{Invitation, Inviting};
use sweetspot_sizing::{PROBE_SIZE, SenderReport};
use sweetspot_units::{Bytes, Duration, Time};

use crate::sender_help::SenderRequest;

/// The time between two punches of a guest that has not heard from the host yet.
const PUNCH_INTERVAL: Duration = Duration::from_millis(100);
/// A guest stops punching after this time: datagrams are blocked, or the host does not know the guest. It is three of the
/// longest satellite RTTs.
const PUNCH_TIMEOUT: Duration = Duration::from_secs(2);
/// The time until a steering message is first repeated; the time doubles with each repetition.
const FIRST_REPEAT: Duration = Duration::from_millis(50);
/// The longest time between two repetitions, which do not stop while the message asks for something.
const LONGEST_REPEAT: Duration = Duration::from_secs(1);
/// A sender that receives no steering for this long, four repetitions, sends as it did before.
const LEASE: Duration = Duration::from_secs(5);

/// Exchanges datagrams with the other end of a TCP connection, without I/O. An [`Invitation`] carries the key. Each end may
/// send and receive on the connection: as a sender it answers probes, sends trains and obeys the receiver's steering; as a
/// receiver it makes these requests.
///
/// No packet is answered with more bytes than it had, except for trains, which have a budget. Each probe and each request
/// counts once, so a replayed packet has no effect.
///
/// **Contract.** `now` never goes backwards. After every `handle_*` call, the caller sends everything that
/// [`PeerLink::poll_transmit`] returns: a guest to the host's port at the connection's peer, a host to the source of the
/// guest's first genuine packet.
pub struct PeerLink {
    own: PacketAuthenticator,
    peers: PacketAuthenticator,
    /// The length of the IP and UDP headers.
    headers: Bytes,
    end: Inviting,
    began: Option<Time>,
    /// When the last packet from the peer arrived, and the last one in which it acted as a receiver.
    last_received: Option<Time>,
    last_request: Option<Time>,
    /// The number of punches sent, and the highest number of a punch received.
    punches: u32,
    punched: u32,
    punch_due: Time,
    sender: SenderSide,
    steer: Repeated,
    transmits: VecDeque<Transmit>,
}

/// A packet from the peer that its caller handles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Received {
    /// An answer to a probe.
    Answer(ProbeAnswer),
    /// A packet of a train, and its length on the wire.
    Train(TrainPacket, Bytes),
    /// A steering message: the receiver asks this end to send in this way.
    Steer(Steering),
}

/// Datagrams to be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transmit {
    /// One datagram.
    One(Vec<u8>),
    /// A train, to be sent back to back.
    Train(Vec<Vec<u8>>),
}

#[derive(Debug, Default)]
struct SenderSide {
    reflector: Reflector,
    budget: TrainBudget,
    /// The lowest number that the next train may have.
    next_train: u32,
    /// The highest number of a steering message received.
    steered: u32,
    steering: Steering,
}

/// A receiver's steering message. It is repeated because it may be lost.
#[derive(Debug)]
struct Repeated {
    sequence: u32,
    steering: Steering,
    due: Time,
    wait: Duration,
}

impl PeerLink {
    /// A link for the `end` that made or received an invitation. IP and UDP headers take `headers` bytes.
    pub fn new(invitation: &Invitation, end: Inviting, headers: Bytes) -> PeerLink {
        let peer = match end {
            Inviting::Host => Inviting::Guest,
            Inviting::Guest => Inviting::Host,
        };
        let steering = Steering::default();
        PeerLink {
            own: invitation.authenticator(end),
            peers: invitation.authenticator(peer),
            headers,
            end,
            began: None,
            last_received: None,
            last_request: None,
            punches: 0,
            punched: 0,
            punch_due: Time::ZERO,
            sender: SenderSide::default(),
            steer: Repeated { sequence: 0, steering, due: Time::MAX, wait: FIRST_REPEAT },
            transmits: VecDeque::new(),
        }
    }

    /// Whether the peer sealed this datagram. Sources of other datagrams must be ignored.
    pub fn is_genuine(&self, datagram: &[u8]) -> bool {
        self.peers.open(datagram).is_some()
    }

    /// Whether a packet from the peer has arrived, so that the peer can be reached.
    pub fn is_up(&self) -> bool {
        self.last_received.is_some()
    }

    /// Whether no packet from the peer arrived in time.
    pub fn has_failed(&self, now: Time) -> bool {
        self.last_received.is_none()
            && self.began.is_some_and(|began| now.since(began) >= PUNCH_TIMEOUT)
    }

    /// How the peer, as a receiver, wants this end to send; `None` if it has not asked within the lease.
    pub fn steering(&self, now: Time) -> Option<Steering> {
        self.last_request
            .filter(|last_request| now.since(*last_request) < LEASE)
            .map(|_| self.sender.steering)
    }

    /// Handles a datagram that arrived at `arrived`. At `now`, this end's sender has delivered `acked` bytes; `report` is its
    /// state.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        arrived: Time,
        datagram: &[u8],
        report: &SenderReport,
        acked: Bytes,
    ) -> Option<Received> {
        let packet = self.peers.open(datagram)?;
        self.last_received = Some(now);
        match packet {
            ProbePacket::Punch { sequence } if sequence > self.punched => {
                self.punched = sequence;
                if self.end == Inviting::Host {
                    self.punch(Bytes::new(datagram.len() as u64));
                }
            }
            ProbePacket::Probe { sequence: probe } => {
                let sequence = self.sender.reflector.handle_probe(probe)?;
                self.last_request = Some(now);
                let held = now.since(arrived);
                let answer =
                    ProbePacket::Answer(ProbeAnswer { probe, sequence, held, report: *report });
                self.transmit(&answer, Bytes::new(datagram.len() as u64));
            }
            ProbePacket::TrainRequest { train, packets, payload } => {
                self.last_request = Some(now);
                self.send_train(train, packets, payload, acked);
            }
            ProbePacket::Steer { sequence, steering } if sequence > self.sender.steered => {
                self.last_request = Some(now);
                (self.sender.steered, self.sender.steering) = (sequence, steering);
                return Some(Received::Steer(steering));
            }
            // A repetition only renews the lease.
            ProbePacket::Steer { sequence, .. } if sequence == self.sender.steered => {
                self.last_request = Some(now);
            }
            ProbePacket::Answer(answer) => return Some(Received::Answer(answer)),
            ProbePacket::Train(packet) => {
                let size = Bytes::new(datagram.len() as u64) + self.headers;
                return Some(Received::Train(packet, size));
            }
            ProbePacket::Punch { .. }
            | ProbePacket::Steer { .. }
            | ProbePacket::Stream(_)
            | ProbePacket::Echo { .. }
            | ProbePacket::Reflected { .. } => {}
        }
        None
    }

    /// Sends a request to the peer, as a sender.
    pub fn handle_request(&mut self, now: Time, request: &SenderRequest) {
        match *request {
            SenderRequest::Probe { sequence } => {
                let size = self.small();
                self.transmit(&ProbePacket::Probe { sequence }, size);
            }
            SenderRequest::Train { id, request } => {
                let payload = request.size.saturating_sub(self.headers).get();
                let payload = u32::try_from(payload).unwrap_or(u32::MAX);
                let packet =
                    ProbePacket::TrainRequest { train: id, packets: request.packets, payload };
                // The request is sent twice because one may be lost; the peer ignores the second.
                for _ in 0..2 {
                    self.transmit(&packet, Bytes::ZERO);
                }
            }
            SenderRequest::Steer(steering) => {
                let sequence = self.steer.sequence + 1;
                self.steer = Repeated { sequence, steering, due: now, wait: FIRST_REPEAT };
                self.handle_timeout(now);
            }
        }
    }

    /// Releases the sender: it is no longer steered.
    pub fn release(&mut self, now: Time) {
        if self.steer.steering != Steering::default() {
            self.handle_request(now, &SenderRequest::Steer(Steering::default()));
        }
    }

    /// Sends the punches and repeats due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.began.get_or_insert(now);
        if self.is_punching(now) && now >= self.punch_due {
            self.punch_due = now + PUNCH_INTERVAL;
            self.punch(self.small());
        }
        if now >= self.steer.due {
            let Repeated { sequence, steering, wait, .. } = self.steer;
            self.transmit(&ProbePacket::Steer { sequence, steering }, Bytes::ZERO);
            let is_over = steering == Steering::default() && wait >= LONGEST_REPEAT;
            self.steer.due = if is_over { Time::MAX } else { now + wait };
            self.steer.wait = (wait * 2).min(LONGEST_REPEAT);
        }
    }

    /// When to call [`PeerLink::handle_timeout`] next.
    pub fn poll_timeout(&self, now: Time) -> Time {
        let punch = if self.is_punching(now) { self.punch_due } else { Time::MAX };
        punch.min(self.steer.due)
    }

    fn is_punching(&self, now: Time) -> bool {
        self.end == Inviting::Guest && self.last_received.is_none() && !self.has_failed(now)
    }

    /// The next datagrams to send; `None` once there are no more.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    fn small(&self) -> Bytes {
        PROBE_SIZE.saturating_sub(self.headers)
    }

    fn punch(&mut self, size: Bytes) {
        self.punches = self.punches.wrapping_add(1);
        self.transmit(&ProbePacket::Punch { sequence: self.punches }, size);
    }

    fn transmit(&mut self, packet: &ProbePacket, size: Bytes) {
        self.transmits.push_back(Transmit::One(self.own.close(packet, size)));
    }

    fn send_train(&mut self, train: u32, packets: u32, payload: u32, acked: Bytes) {
        let is_new = train >= self.sender.next_train;
        if !is_new || !self.sender.budget.take(packets, payload, acked) {
            return;
        }
        self.sender.next_train = train.saturating_add(1);
        let size = Bytes::new(payload.into());
        let packet =
            |index| self.own.close(&ProbePacket::Train(TrainPacket { train, index }), size);
        self.transmits.push_back(Transmit::Train((0..packets).map(packet).collect()));
    }
}
