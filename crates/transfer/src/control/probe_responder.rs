//! The sender's side of the out-of-band packets: punches the way open, answers probes, sends
//! trains.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use sweetspot_linux::clock;
use sweetspot_linux::event_fd::{EventFd, wait_readable};
use sweetspot_linux::tcp::Info;
use sweetspot_linux::udp::{ReceivedDatagram, Udp};
use sweetspot_protocol::probe::{
    PacketAuthenticator, ProbeAnswer, ProbePacket, Reflector, TrainPacket,
};
use sweetspot_sizing::{CongestionState, PROBE_SIZE, SenderReport};
use sweetspot_units::{Bytes, Duration, Time};

use crate::limits::{FREE_TRAIN_BYTES, MAX_TRAIN_PACKET_BYTES, MAX_TRAIN_PACKETS, TRAIN_SHARE};
use crate::wire::channel::Channel;

/// Until probes come, and when they stay away, the way is punched open this often.
const PUNCH_INTERVAL: Duration = Duration::from_millis(200);
/// No packet of a train is shorter, whatever is asked for: its own fields need that much.
const LEAST_TRAIN_PACKET: Bytes = Bytes::new(64);
/// IPv6 and UDP headers; with IPv4's a probe is 20 bytes shorter than it might be.
const UDP_IP_HEADERS: Bytes = Bytes::new(48);

/// A slow-start threshold that was never set (TCP_INFINITE_SSTHRESH, include/net/tcp.h).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// Answers one receiver's probes.
pub(crate) struct ProbeResponder {
    channel: Arc<Channel>,
    udp: Udp,
    punches: AtomicU32,
    /// Bytes of all trains so far.
    trains: AtomicU64,
    authenticator: PacketAuthenticator,
    /// Set by the writer when the connection ran dry, cleared by the next report.
    starved: AtomicBool,
    done: AtomicBool,
    event_fd: EventFd,
}

impl ProbeResponder {
    /// A socket to the receiver's port.
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
            trains: AtomicU64::new(0),
            authenticator,
            starved,
            done,
            event_fd: EventFd::new()?,
        })
    }

    /// Tells the receiver where we are.
    pub fn punch(&self) {
        let size = PROBE_SIZE.saturating_sub(UDP_IP_HEADERS);
        let sequence = self.punches.fetch_add(1, Ordering::Relaxed) + 1;
        let _ = self.udp.send(&self.authenticator.close(&ProbePacket::Punch { sequence }, size));
    }

    /// The connection had nothing to send.
    pub fn starved(&self) {
        self.starved.store(true, Ordering::Relaxed);
    }

    /// [`ProbeResponder::run`] returns.
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
        let report = report(&info, self.starved.swap(false, Ordering::Relaxed));
        let held = held(arrival.at);
        let answer = ProbePacket::Answer(ProbeAnswer { probe, sequence, held, report });
        self.udp.send(&self.authenticator.close(&answer, Bytes::new(datagram.len() as u64))).ok()
    }

    /// Sends a train back to back.
    pub fn send_train(&self, train: u32, packets: u32, payload: u32) {
        if packets > MAX_TRAIN_PACKETS || payload > MAX_TRAIN_PACKET_BYTES {
            return;
        }
        let size = Bytes::new(payload.into());
        // Small packets cost their headers, too.
        let bytes = u64::from(packets) * (size.max(LEAST_TRAIN_PACKET) + UDP_IP_HEADERS).get();
        let allowed = FREE_TRAIN_BYTES + self.channel.acked().get() / TRAIN_SHARE;
        if self.trains.load(Ordering::Relaxed) + bytes > allowed {
            return;
        }
        self.trains.fetch_add(bytes, Ordering::Relaxed);
        let authenticator = |index| {
            self.authenticator.close(&ProbePacket::Train(TrainPacket { train, index }), size)
        };
        let datagrams: Vec<_> = (0..packets).map(authenticator).collect();
        // A datagram that cannot be sent counts as lost at the receiver: trains exist to find such losses.
        let _ = self.udp.send_burst(&datagrams);
    }
}

fn held(since: Time) -> Duration {
    clock::now().since(since)
}

fn report(info: &Info, starved: bool) -> SenderReport {
    SenderReport {
        retransmitted: info.total_retrans.into(),
        cwnd: info.cwnd(),
        ssthresh: (info.snd_ssthresh < INFINITE_SSTHRESH)
            .then(|| info.snd_mss * u64::from(info.snd_ssthresh)),
        in_flight: info.snd_mss * u64::from(info.unacked),
        delivery_rate: info.delivery_rate,
        app_limited: info.delivery_rate_app_limited,
        busy: info.busy_time,
        window_limited: info.rwnd_limited,
        minimum_rtt: info.min_rtt,
        state: state(info.ca_state),
        reordering: info.reordering,
        dsacks: info.dsack_dups.unwrap_or(0),
        marked: info.delivered_ce.unwrap_or(0),
        starved,
    }
}

/// `enum tcp_ca_state` (include/uapi/linux/tcp.h). A state of a kernel to come is none that is
/// known to be unusual.
fn state(number: u8) -> CongestionState {
    match number {
        1 => CongestionState::Disorder,
        2 => CongestionState::Reduced,
        3 => CongestionState::Recovery,
        4 => CongestionState::Loss,
        _ => CongestionState::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_sender_that_lost_nothing_reports_an_open_window_without_a_threshold() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut far = listener.accept().unwrap().0;
        near.write_all(&[1; 100_000]).unwrap();
        far.read_exact(&mut vec![0; 100_000]).unwrap();
        let report = report(&Info::read(&near).unwrap(), true);
        assert_eq!((report.retransmitted, report.marked, report.dsacks), (0, 0, 0));
        assert_eq!((report.state, report.ssthresh), (CongestionState::Open, None));
        assert!(report.cwnd > Bytes::ZERO && report.starved);
        assert!(report.minimum_rtt > Duration::ZERO && report.minimum_rtt < Duration::from_secs(1));
    }
}
