//! The sender's side of the out-of-band packets: punches a hole through NATs, answers probes, and sends
//! trains.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use sweetspot_linux::clock;
use sweetspot_linux::event_fd::{EventFd, wait_readable};
use sweetspot_linux::tcp::{Info, sender_report};
use sweetspot_linux::udp::{ReceivedDatagram, Udp};
use sweetspot_protocol::probe::{
    PacketAuthenticator, ProbeAnswer, ProbePacket, Reflector, TrainBudget, TrainPacket,
};
use sweetspot_sizing::PROBE_SIZE;
use sweetspot_units::{Bytes, Duration, Time};

use crate::lock::lock;
use crate::wire::channel::Channel;

/// Interval between hole punches while no probes arrive.
const PUNCH_INTERVAL: Duration = Duration::from_millis(200);
/// IPv6 and UDP headers. On IPv4 an answer is therefore 20 bytes shorter than the probe.
const UDP_IP_HEADERS: Bytes = Bytes::new(48);

/// Answers one receiver's probes.
pub(crate) struct ProbeResponder {
    channel: Arc<Channel>,
    udp: Udp,
    punches: AtomicU32,
    trains: Mutex<TrainBudget>,
    authenticator: PacketAuthenticator,
    /// Set by the writer when the connection had nothing to send, cleared by the next report.
    starved: AtomicBool,
    done: AtomicBool,
    event_fd: EventFd,
}

impl ProbeResponder {
    /// Binds a UDP socket and connects it to the receiver's port.
    pub fn new(
        channel: Arc<Channel>,
        authenticator: PacketAuthenticator,
    ) -> std::io::Result<ProbeResponder> {
        let udp = Udp::bind_any(channel.peer())?;
        udp.connect(channel.peer())?;
        let (starved, done) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(ProbeResponder {
            channel,
            udp,
            punches: AtomicU32::new(0),
            trains: Mutex::default(),
            authenticator,
            starved,
            done,
            event_fd: EventFd::new()?,
        })
    }

    /// Sends a hole punch, which shows the receiver this end's UDP address.
    pub fn punch(&self) {
        let size = PROBE_SIZE.saturating_sub(UDP_IP_HEADERS);
        let sequence = self.punches.fetch_add(1, Ordering::Relaxed) + 1;
        let _ = self.udp.send(&self.authenticator.close(&ProbePacket::Punch { sequence }, size));
    }

    /// Notes that the connection had nothing to send.
    pub fn starved(&self) {
        self.starved.store(true, Ordering::Relaxed);
    }

    /// Makes [`ProbeResponder::run`] return.
    pub fn done(&self) {
        self.done.store(true, Ordering::Release);
        self.event_fd.signal();
    }

    /// Punches and answers until [`ProbeResponder::done`].
    pub fn run(&self) {
        let mut reflector = Reflector::default();
        let (mut datagram, mut punch_at) = ([0; 2048], clock::now());
        while !self.done.load(Ordering::Acquire) {
            if clock::now() >= punch_at {
                self.punch();
                punch_at = clock::now() + PUNCH_INTERVAL;
            }
            if wait_readable(&[self.udp.as_fd(), self.event_fd.as_fd()], punch_at).is_err() {
                return;
            }
            while let Ok(Some(arrival)) = self.udp.receive(&mut datagram) {
                let datagram = &datagram[..arrival.length.min(datagram.len())];
                if self.answer(&mut reflector, datagram, &arrival).is_some() {
                    punch_at = clock::now() + PUNCH_INTERVAL;
                }
            }
        }
    }

    /// Answers a probe with a packet of its own size; anything else gets no answer.
    fn answer(
        &self,
        reflector: &mut Reflector,
        datagram: &[u8],
        arrival: &ReceivedDatagram,
    ) -> Option<()> {
        let ProbePacket::Probe { sequence: probe } = self.authenticator.open(datagram)? else {
            return None;
        };
        let sequence = reflector.handle_probe(probe)?;
        let info = Info::read(self.channel.socket()).ok()?;
        let report = sender_report(&info, self.starved.swap(false, Ordering::Relaxed));
        let held = held(arrival.at);
        let answer = ProbePacket::Answer(ProbeAnswer { probe, sequence, held, report });
        self.udp.send(&self.authenticator.close(&answer, Bytes::new(datagram.len() as u64))).ok()
    }

    /// Sends a train back to back.
    pub fn send_train(&self, train: u32, packets: u32, payload: u32) {
        if !lock(&self.trains).take(packets, payload, self.channel.acked()) {
            return;
        }
        let size = Bytes::new(payload.into());
        let authenticator = |index| {
            self.authenticator.close(&ProbePacket::Train(TrainPacket { train, index }), size)
        };
        let datagrams: Vec<_> = (0..packets).map(authenticator).collect();
        // A datagram that cannot be sent counts as lost. Trains measure such losses.
        let _ = self.udp.send_burst(&datagrams);
    }
}

fn held(since: Time) -> Duration {
    clock::now().since(since)
}
