use proptest::prelude::*;
use sweetspot_tcp::congestion::{Algorithm, Growth};
use sweetspot_tcp::{RecoveryStyle, SenderConfig};

use crate::pair::{Pair, RECEIVER, SENDER, ms};

const SACK: SenderConfig = SENDER;
const LINUX: SenderConfig = SenderConfig {
    recovery: RecoveryStyle::Linux,
    growth: Growth::PerPacket,
    timestamps: true,
    ..SENDER
};
const NEWRENO: SenderConfig = SenderConfig { recovery: RecoveryStyle::NewReno, ..SENDER };
const SACK1: SenderConfig = SenderConfig { recovery: RecoveryStyle::Sack1, ..SENDER };
const FACK: SenderConfig = SenderConfig { recovery: RecoveryStyle::Fack, ..SENDER };
const RENO: SenderConfig = SenderConfig { recovery: RecoveryStyle::Reno, ..SENDER };

fn finished(config: SenderConfig, drops: &[u64]) -> Pair {
    let mut pair = Pair::new(config, RECEIVER, Some(200)).dropping(drops);
    pair.run_until(ms(20_000));
    assert!(pair.sender.is_done(), "{drops:?}: {} arrived", pair.sender.acknowledged());
    pair
}

#[test]
fn every_style_repairs_one_loss_with_one_retransmission_and_no_timeout() {
    for config in [RENO, NEWRENO, SACK, FACK, SACK1, LINUX] {
        let pair = finished(config, &[30]);
        assert_eq!(pair.sender.statistics().timeouts, 0, "{:?}", config.recovery);
        assert_eq!(pair.retransmissions(), [30], "{:?}", config.recovery);
    }
}

#[test]
fn newreno_retransmits_the_next_hole_on_a_partial_ack() {
    // RFC 6582 section 3.2 step 3: one hole per round trip, no timeout.
    let pair = finished(NEWRENO, &[30, 33, 36]);
    assert_eq!(pair.retransmissions(), [30, 33, 36]);
    assert_eq!(pair.sender.statistics().recoveries, 1);
    assert_eq!(pair.sender.statistics().timeouts, 0);
    // ns-2's Reno leaves recovery with the first new ACK and treats the duplicates that follow as old (`bugFix_`), so it waits
    // for its timer.
    assert!(finished(RENO, &[30, 33, 36]).sender.statistics().timeouts > 0);
}

#[test]
fn sack_repairs_many_holes_within_one_rtt() {
    for config in [SACK, FACK, SACK1, LINUX] {
        let pair = finished(config, &[30, 33, 36, 40, 41]);
        assert_eq!(pair.retransmissions(), [30, 33, 36, 40, 41]);
        assert_eq!(pair.sender.statistics().recoveries, 1);
        let again: Vec<u64> = pair.sent.iter().filter(|s| s.retransmitted).map(|s| s.at).collect();
        // Beyond the 40 ms of propagation, the link adds at most 1 ms for each packet of a window.
        assert!(again[4] - again[0] < 100, "{again:?}");
    }
}

#[test]
fn fack_detects_a_loss_burst_with_the_first_ack_beyond_it() {
    // Five packets are lost, then one arrives, more than three above the lowest. RFC 6675 waits for three arrivals.
    let first = |config| {
        let pair = finished(config, &[30, 31, 32, 33, 34]);
        pair.sent.iter().find(|sent| sent.retransmitted).expect("it is repaired").at
    };
    assert!(first(FACK) < first(SACK), "{} {}", first(FACK), first(SACK));
    assert_eq!(finished(FACK, &[30, 31, 32, 33, 34]).sender.statistics().timeouts, 0);
}

#[test]
fn a_lost_retransmission_costs_rfc_6675_a_timeout_but_not_linux() {
    let sack = finished(SACK, &[30, 30]);
    assert_eq!(sack.sender.statistics().timeouts, 1);
    let linux = finished(LINUX, &[30, 30]);
    assert_eq!(linux.sender.statistics().timeouts, 0);
    assert_eq!(linux.retransmissions(), [30, 30]);
    // Linux needs no timeout even if retransmissions are lost repeatedly.
    let linux = finished(LINUX, &[30, 31, 30, 31, 30, 31]);
    assert_eq!(linux.sender.statistics().timeouts, 0);
    assert_eq!(linux.retransmissions().len(), 6);
}

#[test]
fn sack1_times_out_once_half_a_window_is_lost() {
    // A window of 60, halved to 30, with `lost` consecutive losses. After the last duplicate ACK, the count is `lost`; the ACK
    // of the one retransmission subtracts 2. No more packets leave if `lost` - 2 >= 30. RFC 6675 removes lost packets from its
    // pipe.
    let receiver = sweetspot_tcp::ReceiverConfig { window: 60, ..RECEIVER };
    let timeouts = |config, lost: u64| {
        let drops: Vec<u64> = (150..150 + lost).collect();
        let mut pair = Pair::new(config, receiver, Some(400)).dropping(&drops);
        pair.run_until(ms(20_000));
        assert!(pair.sender.is_done());
        pair.sender.statistics().timeouts
    };
    assert_eq!([timeouts(SACK1, 31), timeouts(SACK1, 32)], [0, 1]);
    assert_eq!([timeouts(SACK, 31), timeouts(SACK, 32)], [0, 0]);
}

#[test]
fn losing_the_first_packet_beyond_a_recovery_causes_no_timeout() {
    // RFC 6675 section 5: a recovery may begin once HighACK has reached RecoveryPoint.
    for config in [SACK, LINUX] {
        let first = finished(config, &[30]);
        let at = first.sent.iter().position(|sent| sent.retransmitted).unwrap();
        let highest = first.sent[..at].iter().map(|sent| sent.number).max().unwrap();
        let pair = finished(config, &[30, highest + 1]);
        assert_eq!(pair.sender.statistics().timeouts, 0, "{:?}", config.recovery);
        assert_eq!(pair.retransmissions(), [30, highest + 1]);
    }
}

#[test]
fn a_lost_last_packet_is_rescued_during_a_recovery() {
    // RFC 6675 section 4, NextSeg() rule (4): there are no new data and the hole is repaired, so the highest outstanding packet
    // is retransmitted, which avoids a timeout.
    let config = SenderConfig { initial_window: 50, ..SACK };
    let mut pair = Pair::new(config, RECEIVER, Some(40)).dropping(&[10, 40]);
    pair.run_until(ms(5000));
    assert!(pair.sender.is_done());
    assert_eq!(pair.retransmissions(), [10, 40]);
    assert_eq!(pair.sender.statistics().timeouts, 0);
}

#[test]
fn holes_below_dupthresh_are_retransmitted_if_no_new_data_remains() {
    // Rule (3): 38 has two packets above it, one less than DupThresh.
    let config = SenderConfig { initial_window: 50, ..SACK };
    let mut pair = Pair::new(config, RECEIVER, Some(40)).dropping(&[10, 38]);
    pair.run_until(ms(5000));
    assert!(pair.sender.is_done());
    // With nothing else to send, rule (4) has already used its one retransmission, for the last packet.
    assert_eq!(pair.retransmissions(), [10, 40, 38]);
    assert_eq!(pair.sender.statistics().timeouts, 0);
}

#[test]
fn after_a_timeout_linux_retransmits_only_missing_packets() {
    // Both retransmissions are lost, and no later packet can reveal that.
    let config = SenderConfig { initial_window: 40, ..LINUX };
    let mut pair = Pair::new(config, RECEIVER, Some(40)).dropping(&[5, 20, 5, 20]);
    pair.run_until(ms(5000));
    assert!(pair.sender.is_done());
    assert_eq!(pair.sender.statistics().timeouts, 1);
    assert_eq!(pair.retransmissions(), [5, 20, 5, 20]);
}

#[test]
fn prr_halves_cwnd_without_half_an_rtt_of_silence() {
    // A window of 64 in slow start, one loss. RFC 6675 is silent until the pipe has fallen to half a window; PRR sends a packet
    // for every other ACK (RFC 6937 section 1).
    let config = |recovery| SenderConfig { recovery, initial_window: 64, ..LINUX };
    let silence = |recovery| {
        let mut pair = Pair::new(config(recovery), RECEIVER, Some(400)).dropping(&[65]);
        pair.run_until(ms(5000));
        let times: Vec<u64> = pair.sent.iter().map(|sent| sent.at).collect();
        let at = pair.sent.iter().position(|sent| sent.retransmitted).unwrap();
        let gaps = times[at..at + 40].windows(2).map(|pair| pair[1] - pair[0]);
        (gaps.max().unwrap(), pair.sender.ssthresh())
    };
    let (prr, threshold) = silence(RecoveryStyle::Linux);
    let (rfc6675, _) = silence(RecoveryStyle::Sack);
    // ACKs arrive a millisecond apart, so every other ACK means 2 ms.
    assert!(prr <= 3, "{prr} ms");
    assert!(rfc6675 >= 30, "{rfc6675} ms");
    assert!(threshold >= 32.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn all_data_arrives_under_any_pattern_of_losses(
        drops in prop::collection::vec(0u64..120, 0..60),
        recovery in prop::sample::select(vec![
            RecoveryStyle::Reno, RecoveryStyle::NewReno, RecoveryStyle::Sack, RecoveryStyle::Sack1,
            RecoveryStyle::Linux, RecoveryStyle::Fack,
        ]),
        algorithm in prop::sample::select(vec![
            Algorithm::Reno, Algorithm::Cubic, Algorithm::Vegas, Algorithm::Bbr, Algorithm::Lp,
        ]),
        timestamps in any::<bool>(),
        limited_transmit in any::<bool>(),
        window in prop::sample::select(vec![3u64, 20, 1000]),
        send_buffer in prop::sample::select(vec![2u64, 15, 1000]),
    ) {
        let config = SenderConfig {
            recovery, algorithm, timestamps, limited_transmit, send_buffer, ..SENDER
        };
        let receiver = sweetspot_tcp::ReceiverConfig { window, ..RECEIVER };
        let mut pair = Pair::new(config, receiver, Some(120)).dropping(&drops);
        // Twenty losses of one packet double the timeout up to its maximum of a minute.
        pair.run_until(ms(4_000_000));
        prop_assert!(pair.sender.is_done(), "{} of 120 arrived", pair.sender.acknowledged());
        prop_assert_eq!(pair.receiver.next(), 121);
    }
}
