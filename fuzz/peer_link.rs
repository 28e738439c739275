//! A peer with the key, as a function of bytes: whatever it sends, a link replies with no more than it may, and the
//! controller keeps running. Run by the fuzz target (`cargo +nightly fuzz run peer_link`) and by the property tests of
//! `sweetspot-control`.

#![allow(dead_code, reason = "a target uses the one half, tests the other")]

use sweetspot_control::{
    ConnectionSample, PathGroup, PeerLink, Received, Transmit, receiver_config,
};
use sweetspot_protocol::probe::{ProbePacket, Steering, TrainPacket};
use sweetspot_protocol::{Invitation, Inviting};
use sweetspot_sizing::{CongestionChoice, ProbeAnswer, SenderReport, Sizing};
use sweetspot_units::{Bytes, Duration, Rate, Time};

/// Bytes that trains may use in addition to a tenth of the acknowledged bytes.
const FREE_TRAINS: u64 = 4_000_000;
const COOKIE: u64 = 1;

/// A hostile peer and this end.
struct RunFigure {
    peer: sweetspot_protocol::probe::PacketAuthenticator,
    link: PeerLink,
    group: PathGroup,
    now: Time,
    received: u64,
    acked: u64,
    /// UDP payload received, sent as replies, and sent as trains.
    came: u64,
    answered: u64,
    trains: u64,
}

/// Runs a script in which five bytes are an event. The first byte says which end this is.
pub fn peer_link(data: &[u8]) {
    let Some((end, script)) = data.split_first() else { return };
    let (own, peer) = match end % 2 {
        0 => (Inviting::Host, Inviting::Guest),
        _ => (Inviting::Guest, Inviting::Host),
    };
    let invitation = Invitation { port: 9, key: [7; 16] };
    let config = receiver_config(Bytes::new(1448), Bytes::new(6_000_000));
    let controller = Sizing::Sobas.controller(&config).expect("it needs nothing else");
    let mut simulate = RunFigure {
        peer: invitation.authenticator(peer),
        link: PeerLink::new(&invitation, own, Bytes::new(28)),
        group: PathGroup::with_help(controller, config.mss),
        now: Time::from_nanos(1_000_000_000),
        received: 0,
        acked: 0,
        came: 0,
        answered: 0,
        trains: 0,
    };
    simulate.group.add(simulate.now, COOKIE, simulate.sample());
    for event in script.chunks_exact(5) {
        let [kind, a, b, c, d] = event else { unreachable!("five bytes") };
        simulate.event(*kind, u32::from_be_bytes([*a, *b, *c, *d]));
        simulate.check();
    }
}

impl RunFigure {
    fn sample(&self) -> ConnectionSample {
        ConnectionSample {
            received: Bytes::new(self.received),
            unread: Bytes::ZERO,
            rtt: Some(Duration::from_millis(40)),
            minimum_rtt: Some(Duration::from_millis(40)),
            out_of_order: 0,
            advertised: None,
        }
    }

    fn event(&mut self, kind: u8, n: u32) {
        let (low, high) = (n & 0xffff, n >> 16);
        let report = SenderReport {
            cwnd: Bytes::new(n.into()),
            retransmitted: high.into(),
            minimum_rtt: Duration::from_micros(low.into()),
            ..SenderReport::default()
        };
        let packet = match kind % 12 {
            0 => ProbePacket::Punch { sequence: n },
            1 => ProbePacket::Probe { sequence: low },
            2 => {
                let held = Duration::from_micros(high.into());
                ProbePacket::Answer(ProbeAnswer { probe: high, sequence: low, held, report })
            }
            3 => ProbePacket::Train(TrainPacket { train: high % 64, index: low }),
            4 => ProbePacket::TrainRequest { train: high % 64, packets: low % 600, payload: high },
            5 => ProbePacket::TrainRequest { train: n, packets: n, payload: n },
            6 => {
                let pacing = (low > 0).then(|| Rate::from_bits_per_second(u64::from(n)));
                let steering = Steering { pacing, congestion: CongestionChoice::Bbr };
                ProbePacket::Steer { sequence: high, steering }
            }
            7 => ProbePacket::Echo { sequence: n },
            8 => return self.round(u64::from(low) * 1000),
            9 => {
                self.received += u64::from(n % 1_000_000);
                return self.round(20_000_000);
            }
            10 => {
                self.acked += u64::from(n % 1_000_000);
                return;
            }
            _ => return self.garbage(n),
        };
        self.arrives(&self.peer.close(&packet, Bytes::new(u64::from(kind) * 4)), &report);
    }

    /// Data that the peer did not seal has no effect.
    fn garbage(&mut self, n: u32) {
        let bytes = n.to_be_bytes().repeat(1 + n as usize % 30);
        let was_up = self.link.is_up();
        let received = self.link.handle_datagram(
            self.now,
            self.now,
            &bytes,
            &SenderReport::default(),
            Bytes::ZERO,
        );
        assert!(received.is_none() && self.link.is_up() == was_up);
        assert!(self.link.poll_transmit().is_none());
    }

    fn arrives(&mut self, datagram: &[u8], report: &SenderReport) {
        assert!(self.link.is_genuine(datagram));
        self.came += datagram.len() as u64;
        let acked = Bytes::new(self.acked);
        match self.link.handle_datagram(self.now, self.now, datagram, report, acked) {
            Some(Received::Answer(answer)) => {
                self.group.handle_answer(self.now, self.now, &answer);
            }
            Some(Received::Train(packet, size)) => {
                self.group.handle_train_packet(self.now, self.now, size, packet);
            }
            Some(Received::Steer(steering)) => {
                assert_eq!(self.link.steering(self.now), Some(steering));
            }
            None => {}
        }
        while let Some(transmit) = self.link.poll_transmit() {
            match transmit {
                Transmit::One(datagram) => self.answered += datagram.len() as u64,
                Transmit::Train(datagrams) => {
                    self.trains += datagrams.iter().map(|d| d.len() as u64).sum::<u64>();
                }
            }
        }
        assert!(self.link.is_up());
        self.group.handle_reachable();
    }

    fn round(&mut self, nanos: u64) {
        self.now += Duration::from_nanos(nanos);
        self.group.handle_sample(self.now, COOKIE, self.sample());
        self.group.handle_round(self.now);
        while let Some(request) = self.group.poll_request() {
            self.link.handle_request(self.now, &request);
        }
        self.link.handle_timeout(self.now);
        while self.link.poll_transmit().is_some() {}
        while self.group.poll_limit_change().is_some() {}
        while self.group.poll_event().is_some() {}
    }

    fn check(&self) {
        assert!(self.answered <= self.came, "an answer is no longer than what it answers");
        assert!(self.trains <= FREE_TRAINS + self.acked / 10, "trains keep to their budget");
        if let Some(limit) = self.group.limit(COOKIE) {
            assert!(limit >= Bytes::new(4 * 1448), "fast retransmit works: {limit}");
        }
    }
}
