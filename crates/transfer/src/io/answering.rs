//! The sender's side of the out-of-band packets: punches the way open, answers probes, sends
//! trains.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use sweetspot_linux::clock;
use sweetspot_linux::tcp::Info;
use sweetspot_linux::udp::{Arrival, Udp};
use sweetspot_linux::wake::{Bell, wait_readable};
use sweetspot_sizing::SenderReport;
use sweetspot_units::{Bytes, Duration, Time};

use super::channel::Channel;
use crate::probe::{Answer, Packet, Reflector, Seal, TrainPacket};
use crate::steering::PROBE_SIZE;

/// Until probes come, and when they stay away, the way is punched open this often.
const PUNCH_INTERVAL: Duration = Duration::from_millis(200);
/// Nobody needs longer trains or larger packets: what asks for them is no receiver of ours.
const LONGEST_TRAIN: u32 = 512;
const LARGEST_PACKET: u32 = 9216;
/// IPv6 and UDP headers; with IPv4's a probe is 20 bytes shorter than it might be.
const HEADERS: Bytes = Bytes::new(48);

/// Answers one receiver's probes.
pub(crate) struct Answering<'a> {
    channel: &'a Channel,
    udp: Udp,
    seal: Seal,
    /// Set by the writer when the connection ran dry, cleared by the next report.
    starved: AtomicBool,
    done: AtomicBool,
    bell: Bell,
}

impl<'a> Answering<'a> {
    /// A socket to the receiver's port.
    pub fn new(channel: &'a Channel, seal: Seal) -> std::io::Result<Answering<'a>> {
        let udp = Udp::bind_any(channel.peer())?;
        udp.connect(channel.peer())?;
        let (starved, done) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Answering { channel, udp, seal, starved, done, bell: Bell::new()? })
    }

    /// Tells the receiver where we are.
    pub fn punch(&self) {
        let size = PROBE_SIZE.saturating_sub(HEADERS);
        let _ = self.udp.send(&self.seal.close(&Packet::Punch, size));
    }

    /// The connection had nothing to send.
    pub fn starved(&self) {
        self.starved.store(true, Ordering::Relaxed);
    }

    /// [`Answering::run`] returns.
    pub fn done(&self) {
        self.done.store(true, Ordering::Release);
        self.bell.ring();
    }

    /// Punches and answers until [`Answering::done`].
    pub fn run(&self) {
        let mut reflector = Reflector::default();
        let (mut datagram, mut punch_at) = ([0; 2048], clock::now());
        while !self.done.load(Ordering::Acquire) {
            if clock::now() >= punch_at {
                self.punch();
                punch_at = clock::now() + PUNCH_INTERVAL;
            }
            if wait_readable(&[self.udp.as_fd(), self.bell.as_fd()], punch_at).is_err() {
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
    fn answer(&self, reflector: &mut Reflector, datagram: &[u8], arrival: &Arrival) -> Option<()> {
        let Packet::Probe { sequence: probe } = self.seal.open(datagram)? else { return None };
        let sequence = reflector.handle_probe(probe)?;
        let info = Info::read(self.channel.socket()).ok()?;
        let report = SenderReport {
            retransmitted: info.total_retrans.into(),
            cwnd: info.cwnd(),
            starved: self.starved.swap(false, Ordering::Relaxed),
        };
        let held = held(arrival.at);
        let answer = Packet::Answer(Answer { probe, sequence, held, report });
        self.udp.send(&self.seal.close(&answer, Bytes::new(datagram.len() as u64))).ok()
    }

    /// Sends a train back to back.
    pub fn send_train(&self, train: u32, packets: u32, payload: u32) {
        if packets > LONGEST_TRAIN || payload > LARGEST_PACKET {
            return;
        }
        let size = Bytes::new(payload.into());
        let seal = |index| self.seal.close(&Packet::Train(TrainPacket { train, index }), size);
        let datagrams: Vec<_> = (0..packets).map(seal).collect();
        // What does not leave is missed by the receiver, which is what trains are for.
        let _ = self.udp.send_burst(&datagrams);
    }
}

fn held(since: Time) -> Duration {
    clock::now().since(since)
}
