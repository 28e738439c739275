use std::collections::VecDeque;

use sweetspot_protocol::probe::{
    PacketAuthenticator, ProbeAnswer, ProbePacket, Reflector, Steering, TrainBudget, TrainPacket,
};
use sweetspot_protocol::{Invitation, Inviting};
use sweetspot_sizing::{PROBE_SIZE, SenderReport};
use sweetspot_units::{Bytes, Duration, Time};

use crate::sender_help::SenderRequest;

/// Until it hears from the host, a guest sends a punch this often, ...
const PUNCH_INTERVAL: Duration = Duration::from_millis(100);
/// ... and no longer than this: then datagrams are blocked, or the host does not know them. Three of the longest round trips
/// of satellites.
const GIVE_UP: Duration = Duration::from_secs(2);
/// A steering message is repeated after this time, then after twice as long each time, ...
const FIRST_REPEAT: Duration = Duration::from_millis(50);
/// ... and at least this often while it asks for anything.
const LONGEST_REPEAT: Duration = Duration::from_secs(1);
/// A sender that hears nothing for this long, four repeats, sends as it did before.
const LEASE: Duration = Duration::from_secs(5);

/// One end's datagrams to the other end of a TCP connection, without their I/O. An [`Invitation`] carries the key. Each end
/// may send and receive on the connection: as a sender it answers probes, sends trains and obeys the receiver; as a receiver
/// it asks for that.
///
/// No packet that arrives is answered with more bytes than it had, except for trains, which have a budget. Each probe and
/// each request counts once, so that a repeated packet has no effect.
///
/// **Contract.** `now` never goes backwards. After every `handle_*` call the caller sends all that [`PeerLink::poll_transmit`]
/// returns, to the host's port at the connection's peer, or to where the guest's first genuine
/// packet came from.
pub struct PeerLink {
    own: PacketAuthenticator,
    peers: PacketAuthenticator,
    /// IP and UDP headers.
    headers: Bytes,
    end: Inviting,
    began: Option<Time>,
    /// When the peer was last heard, and when it last acted as a receiver.
    heard: Option<Time>,
    asked: Option<Time>,
    /// Punches sent, and the number of the newest that came.
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
    /// A packet of a train, and its bytes on the wire.
    Train(TrainPacket, Bytes),
    /// The receiver asks this end to send like this.
    Steer(Steering),
}

/// Datagrams to be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transmit {
    /// One datagram.
    One(Vec<u8>),
    /// A train, back to back.
    Train(Vec<Vec<u8>>),
}

#[derive(Debug, Default)]
struct SenderSide {
    reflector: Reflector,
    budget: TrainBudget,
    /// One more than the number of the last train.
    next_train: u32,
    /// The number of the last steering message.
    steered: u32,
    steering: Steering,
}

/// The steering message of a receiver, which is repeated because it may be lost.
#[derive(Debug)]
struct Repeated {
    sequence: u32,
    steering: Steering,
    due: Time,
    wait: Duration,
}

impl PeerLink {
    /// The link of the `end` that made or received an invitation. IP and UDP headers take `headers` bytes.
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
            heard: None,
            asked: None,
            punches: 0,
            punched: 0,
            punch_due: Time::ZERO,
            sender: SenderSide::default(),
            steer: Repeated { sequence: 0, steering, due: Time::MAX, wait: FIRST_REPEAT },
            transmits: VecDeque::new(),
        }
    }

    /// Whether a datagram is the peer's: the sources of those that are not must be ignored.
    pub fn is_genuine(&self, datagram: &[u8]) -> bool {
        self.peers.open(datagram).is_some()
    }

    /// Whether the peer was heard, so that it can be reached.
    pub fn is_up(&self) -> bool {
        self.heard.is_some()
    }

    /// Whether the peer was not heard in time.
    pub fn has_failed(&self, now: Time) -> bool {
        self.heard.is_none() && self.began.is_some_and(|began| now.since(began) >= GIVE_UP)
    }

    /// How the peer, as a receiver, asks this end to send; `None` if it has asked for nothing lately.
    pub fn steering(&self, now: Time) -> Option<Steering> {
        self.asked.filter(|asked| now.since(*asked) < LEASE).map(|_| self.sender.steering)
    }

    /// A datagram arrived at `arrived`. This end's sender delivered `acked` bytes and has this to report, at `now`.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        arrived: Time,
        datagram: &[u8],
        report: &SenderReport,
        acked: Bytes,
    ) -> Option<Received> {
        let packet = self.peers.open(datagram)?;
        self.heard = Some(now);
        match packet {
            ProbePacket::Punch { sequence } if sequence > self.punched => {
                self.punched = sequence;
                if self.end == Inviting::Host {
                    self.punch(Bytes::new(datagram.len() as u64));
                }
            }
            ProbePacket::Probe { sequence: probe } => {
                let sequence = self.sender.reflector.handle_probe(probe)?;
                self.asked = Some(now);
                let held = now.since(arrived);
                let answer =
                    ProbePacket::Answer(ProbeAnswer { probe, sequence, held, report: *report });
                self.transmit(&answer, Bytes::new(datagram.len() as u64));
            }
            ProbePacket::TrainRequest { train, packets, payload } => {
                self.asked = Some(now);
                self.send_train(train, packets, payload, acked);
            }
            ProbePacket::Steer { sequence, steering } if sequence > self.sender.steered => {
                self.asked = Some(now);
                (self.sender.steered, self.sender.steering) = (sequence, steering);
                return Some(Received::Steer(steering));
            }
            // A repetition renews the lease.
            ProbePacket::Steer { sequence, .. } if sequence == self.sender.steered => {
                self.asked = Some(now);
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

    /// Asks the peer, as a sender, for something.
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
                // Twice, as one may be lost; the second counts for nothing.
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

    /// The receiver asks for nothing from now on.
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
        self.end == Inviting::Guest && self.heard.is_none() && !self.has_failed(now)
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
