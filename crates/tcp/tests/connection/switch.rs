//! Switching the congestion control, and pacing requests by the receiver, during a connection.

use sweetspot_tcp::congestion::{Algorithm, Growth};
use sweetspot_tcp::{RecoveryStyle, Sender, SenderConfig};
use sweetspot_units::Rate;

use crate::pair::{Pair, RECEIVER, SENDER, Sent, ms};

/// A sender configured like Linux's.
const LINUX: SenderConfig = SenderConfig {
    recovery: RecoveryStyle::Linux,
    growth: Growth::PerPacket,
    timestamps: true,
    ..SENDER
};

/// The state that a switch must not change: the window (Linux keeps whole packets), packets in flight, arrivals, counters.
fn view(sender: &Sender) -> impl PartialEq + std::fmt::Debug + use<> {
    (sender.cwnd().floor(), sender.outstanding(), sender.acknowledged(), sender.statistics())
}

#[test]
fn a_congestion_control_switch_keeps_the_window_and_loses_nothing() {
    for own in [Algorithm::Reno, Algorithm::Cubic] {
        for lost in [&[][..], &[60], &[60, 61, 75]] {
            // Packet 60 leaves in the third round trip, before 170 ms, and is repaired by 300 ms.
            for first in (60..400).step_by(20) {
                let config = SenderConfig { algorithm: own, ..LINUX };
                let mut pair = Pair::new(config, RECEIVER, Some(3000)).dropping(lost);
                for (n, algorithm) in [Algorithm::Bbr, own, Algorithm::Bbr, own].iter().enumerate()
                {
                    pair.run_until(ms(first + 500 * n as u64));
                    let before = view(&pair.sender);
                    pair.sender.switch(*algorithm);
                    assert_eq!(view(&pair.sender), before, "{own:?} {lost:?} {first}");
                    assert_eq!(pair.sender.algorithm(), *algorithm);
                }
                // 3000 packets take three seconds.
                pair.run_until(ms(60_000));
                assert!(pair.sender.is_done(), "{own:?} {lost:?} {first}");
                assert_eq!(pair.receiver.next(), 3001);
                // The SYN and each packet once, and lost packets a second time.
                assert_eq!(pair.retransmissions(), lost, "{own:?} {first}");
                assert_eq!(pair.sent.len(), 3001 + lost.len());
                assert_eq!(pair.sender.statistics().sent, 3001 + lost.len() as u64);
            }
        }
    }
}

/// Every transmission of a transfer. At the beginning its receiver requests these pacing rates, one after another.
fn transmissions(config: SenderConfig, requested: &[Option<Rate>]) -> Vec<Sent> {
    let mut pair = Pair::new(config, RECEIVER, Some(300));
    requested.iter().for_each(|rate| pair.sender.set_pacing(*rate));
    pair.run_until(ms(60_000));
    assert!(pair.sender.is_done());
    pair.sent
}

#[test]
fn a_requested_pacing_rate_never_speeds_up_a_sender() {
    for algorithm in [Algorithm::Reno, Algorithm::Cubic, Algorithm::Bbr] {
        let paced = SenderConfig { algorithm, pacing: true, ..LINUX };
        let own = transmissions(paced, &[]);
        // A packet takes 0.008 us at this rate, far above what the sender can send.
        let fast = Some(Rate::from_bits_per_second(1_000_000_000_000));
        assert_eq!(transmissions(paced, &[fast]), own, "{algorithm:?}");
        // 1000 bytes take 20 ms at 400 kbit/s, and 1 ms on the path. A packet that is late by less than a gap catches up.
        let slow = transmissions(paced, &[fast, Some(Rate::from_bits_per_second(400_000))]);
        let data: Vec<u64> =
            slow.iter().filter(|sent| sent.number > 0).map(|sent| sent.at).collect();
        let late =
            data.iter().enumerate().skip(2).find(|(n, at)| **at < data[0] + 20 * (*n as u64 - 1));
        assert_eq!(late, None, "{algorithm:?}: {data:?}");
    }
}

#[test]
fn once_given_a_pacing_rate_a_sender_keeps_pacing_by_its_window() {
    let fast = Some(Rate::from_bits_per_second(1_000_000_000_000));
    let own = transmissions(SenderConfig { pacing: true, ..LINUX }, &[]);
    assert_eq!(transmissions(LINUX, &[fast]), own);
    assert_eq!(transmissions(LINUX, &[fast, None]), own);
    // Without a request, ten packets leave at once.
    assert_ne!(transmissions(LINUX, &[None]), own);
}
