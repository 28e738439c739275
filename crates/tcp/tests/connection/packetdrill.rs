//! Scripts of packetdrill (github.com/google/packetdrill, gtests/net/tcp), with their times, ACKs and windows. They show
//! Linux's behaviour. A packet is a segment of the script, and number 0 is the SYN.

use sweetspot_tcp::congestion::{Algorithm, Growth};
use sweetspot_tcp::{Acknowledgement, RecoveryStyle, Run, Sender, SenderConfig};
use sweetspot_units::Time;

use crate::pair::{SENDER, ms};

/// Linux with `../common/defaults.sh`: CUBIC, and an initial window of ten segments.
const LINUX: SenderConfig = SenderConfig {
    algorithm: Algorithm::Cubic,
    recovery: RecoveryStyle::Linux,
    growth: Growth::PerPacket,
    limited_transmit: true,
    slow_start_restart: true,
    ..SENDER
};

/// A sender driven by a script.
struct Script {
    sender: Sender,
    now: Time,
}

impl Script {
    /// A handshake of 100 ms, after which the program has written `packets`.
    fn new(config: SenderConfig, packets: u64) -> Script {
        let mut script = Script { sender: Sender::new(&config, Some(packets)), now: Time::ZERO };
        assert_eq!(script.sent(), [0]);
        script
    }

    /// The numbers of the packets that leave now.
    fn sent(&mut self) -> Vec<u64> {
        let now = self.now;
        std::iter::from_fn(|| self.sender.poll_transmit(now))
            .map(|segment| segment.number)
            .collect()
    }

    /// The ACK of all packets up to `last` arrives at `at` ms with these blocks. Returns the packets that the sender then
    /// sends.
    fn ack(&mut self, at: u64, last: u64, blocks: &[[u64; 2]]) -> Vec<u64> {
        self.now = ms(at);
        let blocks: Vec<Run> =
            blocks.iter().map(|[start, last]| Run { start: *start, end: last + 1 }).collect();
        let ack = Acknowledgement {
            next: last + 1,
            window: 10_000,
            echo: Time::ZERO,
            congestion_echo: false,
            sacks: !blocks.is_empty(),
        };
        self.sender.handle_ack(self.now, &ack, &blocks);
        self.sent()
    }
}

/// The numbers from `first` to `last`.
fn packets(first: u64, last: u64) -> Vec<u64> {
    (first..=last).collect()
}

#[test]
fn slow_start_ack_per_1pkt() {
    let mut script = Script::new(LINUX, 30);
    assert_eq!(script.ack(100, 0, &[]), packets(1, 10));
    // Two packets leave for each one that is acknowledged.
    for n in 1..=10 {
        let at = 205 + (n - 1) / 2 * 5;
        assert_eq!(script.ack(at, n, &[]), packets(9 + 2 * n, 10 + 2 * n), "{n}");
    }
    assert_eq!(script.sender.cwnd(), 20.0);
}

#[test]
fn slow_start_ack_per_2pkt() {
    let mut script = Script::new(LINUX, 30);
    assert_eq!(script.ack(100, 0, &[]), packets(1, 10));
    for n in 1..=5 {
        assert_eq!(script.ack(200 + 5 * n, 2 * n, &[]), packets(7 + 4 * n, 10 + 4 * n), "{n}");
    }
    assert_eq!(script.sender.cwnd(), 20.0);
}

#[test]
fn slow_start_ack_per_4pkt() {
    let mut script = Script::new(LINUX, 30);
    assert_eq!(script.ack(100, 0, &[]), packets(1, 10));
    assert_eq!(script.ack(210, 4, &[]), packets(11, 18));
    assert_eq!(script.ack(220, 8, &[]), packets(19, 26));
    assert_eq!(script.ack(225, 10, &[]), packets(27, 30));
    assert_eq!(script.sender.cwnd(), 20.0);
}

#[test]
fn slow_start_ack_per_2pkt_send_5pkt_and_send_6pkt() {
    // With half of the window in flight it does not grow. One more packet is enough for a window of twelve.
    for (size, due) in [(5, [10.0, 10.0, 10.0]), (6, [12.0, 12.0, 12.0])] {
        let mut script = Script::new(LINUX, size);
        assert_eq!(script.ack(100, 0, &[]), packets(1, size));
        for (last, due) in [2, 4, size].into_iter().zip(due) {
            assert_eq!(script.ack(200, last, &[]), packets(1, 0));
            assert_eq!(script.sender.cwnd(), due, "{last} of {size}");
        }
    }
}

#[test]
fn slow_start_after_idle() {
    let mut script = Script::new(LINUX, 26);
    assert_eq!(script.ack(100, 0, &[]), packets(1, 10));
    assert_eq!(script.ack(200, 10, &[]), packets(11, 26));
    assert_eq!(script.sender.cwnd(), 20.0);
    assert_eq!(script.ack(300, 26, &[]), packets(1, 0));
    assert_eq!(script.sender.cwnd(), 36.0);
    // The initial window after two seconds, which are several timeouts.
    script.now = ms(2300);
    script.sender.offer(20);
    assert_eq!(script.sent(), packets(27, 36));
    assert_eq!(script.sender.cwnd(), 10.0);
}

#[test]
fn prr_ss_10pkt_lost_1() {
    let mut script = Script::new(LINUX, 10);
    assert_eq!(script.ack(100, 0, &[]), packets(1, 10));
    assert_eq!(script.ack(210, 0, &[[2, 2]]), packets(1, 0));
    assert_eq!(script.ack(220, 0, &[[2, 3]]), packets(1, 0));
    assert_eq!(script.ack(230, 0, &[[2, 4]]), [1]);
    // CUBIC: 0.7 of ten. Four packets left the network and one was retransmitted.
    assert_eq!((script.sender.cwnd(), script.sender.ssthresh()), (7.0, 7.0));
    script.now = ms(250);
    script.sender.offer(7);
    assert_eq!(script.sent(), packets(1, 0));
    // One packet leaves for each SACKed one.
    for n in 5..=10 {
        assert_eq!(script.ack(210 + 10 * n, 0, &[[2, n]]), [n + 6], "{n}");
    }
    assert_eq!(script.ack(330, 10, &[]), [17]);
    assert_eq!((script.sender.cwnd(), script.sender.ssthresh()), (7.0, 7.0));
}

#[test]
fn limited_transmit_sack() {
    // Two packets leave for two duplicate ACKs. Then it turns out that packets were reordered: only one of the three
    // acknowledged packets is newly delivered, so the window grows to 11.
    let mut script = Script::new(LINUX, 15);
    assert_eq!(script.ack(100, 0, &[]), packets(1, 10));
    assert_eq!(script.ack(210, 0, &[[2, 2]]), [11]);
    assert_eq!(script.ack(220, 0, &[[2, 3]]), [12]);
    assert_eq!(script.ack(230, 3, &[]), [13, 14]);
    assert_eq!(script.ack(250, 5, &[]), [15]);
}

#[test]
fn fr_4pkt_sack() {
    // Four packets, and SACK blocks of the last three: the third block causes the retransmission of the first packet.
    let mut script = Script::new(LINUX, 4);
    assert_eq!(script.ack(100, 0, &[]), packets(1, 4));
    assert_eq!(script.ack(200, 0, &[[2, 2]]), packets(1, 0));
    assert_eq!(script.ack(200, 0, &[[2, 3]]), packets(1, 0));
    assert_eq!(script.ack(200, 0, &[[2, 4]]), [1]);
    assert_eq!(script.ack(300, 4, &[]), packets(1, 0));
    assert!(script.sender.is_done());
}
