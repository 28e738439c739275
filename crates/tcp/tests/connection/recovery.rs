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
fn every_style_repairs_one_loss_by_one_retransmission_and_no_timeout() {
    for config in [RENO, NEWRENO, SACK, FACK, SACK1, LINUX] {
        let pair = finished(config, &[30]);
        assert_eq!(pair.sender.statistics().timeouts, 0, "{:?}", config.recovery);
        assert_eq!(pair.retransmissions(), [30], "{:?}", config.recovery);
    }
}

#[test]
fn a_partial_ack_sends_the_next_hole_again_in_newreno() {
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
fn sack_repairs_many_holes_within_a_round_trip() {
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
fn fack_finds_a_burst_of_losses_by_the_first_acknowledgement_beyond_it() {
    // Five packets are lost, then one arrives, more than three above the lowest. RFC 6675 waits for three arrivals.
    let first = |config| {
        let pair = finished(config, &[30, 31, 32, 33, 34]);
        pair.sent.iter().find(|sent| sent.retransmitted).expect("it is repaired").at
    };
    assert!(first(FACK) < first(SACK), "{} {}", first(FACK), first(SACK));
    assert_eq!(finished(FACK, &[30, 31, 32, 33, 34]).sender.statistics().timeouts, 0);
}

#[test]
fn a_retransmission_lost_again_costs_rfc_6675_a_timeout_and_linux_none() {
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
fn counting_lost_packets_as_in_flight_costs_a_timeout_once_they_are_half_a_window() {
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
fn the_first_packet_beyond_a_recovery_can_be_lost_without_a_timeout() {
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
fn the_last_packet_of_all_is_rescued_where_a_recovery_is_under_way() {
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
fn holes_that_too_few_sacks_condemn_are_filled_when_there_is_nothing_else_to_send() {
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
fn after_a_timeout_linux_sends_again_what_is_missing_and_nothing_else() {
    // Both retransmissions are lost, and no later packet can reveal that.
    let config = SenderConfig { initial_window: 40, ..LINUX };
    let mut pair = Pair::new(config, RECEIVER, Some(40)).dropping(&[5, 20, 5, 20]);
    pair.run_until(ms(5000));
    assert!(pair.sender.is_done());
    assert_eq!(pair.sender.statistics().timeouts, 1);
    assert_eq!(pair.retransmissions(), [5, 20, 5, 20]);
}

#[test]
fn proportional_reduction_halves_without_a_silent_half_round_trip() {
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
    fn whatever_is_lost_everything_arrives_in_the_end(
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
