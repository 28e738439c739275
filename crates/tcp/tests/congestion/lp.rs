use sweetspot_tcp::congestion::{AckSample, Algorithm, Congestion, CongestionControl};
use sweetspot_units::Duration;

use crate::harness::{Flow, at, config, event};

const BASE: u64 = 50;
const QUEUED: u64 = 150;

fn ack(ms: u64, una: u64, rtt: u64) -> AckSample {
    AckSample {
        acked: 1,
        delivered: 1,
        una,
        nxt: una + 30,
        in_flight: 29,
        rtt: Some(Duration::from_millis(rtt)),
        cwnd_limited: true,
        ..AckSample::at(at(ms))
    }
}

/// Acknowledges packets `first` to `last` at `ms`, with 30 packets in flight, so that a round trip lasts 30 ACKs.
fn acknowledge(control: &mut Congestion, ms: u64, (first, last): (u64, u64), rtt: u64) {
    for una in first..=last {
        control.handle_ack(&ack(ms, una, rtt));
    }
}

/// A congestion control after an early congestion indication at 1000 ms, and its window before.
fn indicated() -> (Congestion, f64) {
    let mut control = Congestion::new(Algorithm::Lp, &config());
    // Round trips end with packets 1, 31, 61 and so on.
    acknowledge(&mut control, 900, (1, 31), BASE);
    acknowledge(&mut control, 1000, (32, 60), QUEUED);
    let before = control.cwnd();
    // All packets of this round trip were queued. The range of delay is 100 ms. The moving average of 30 samples, 150 -
    // 100 x (7/8)^30 = 148.2 ms, exceeds 50 + 0.15 x 100 = 65 ms.
    acknowledge(&mut control, 1000, (61, 61), QUEUED);
    (control, before)
}

#[test]
fn an_early_indication_halves_the_window_without_a_loss() {
    let (control, before) = indicated();
    assert!((control.cwnd() - before / 2.0).abs() < 1e-9, "{} of {before}", control.cwnd());
}

#[test]
fn lp_reacts_at_most_once_per_rtt() {
    let (mut control, before) = indicated();
    // These acknowledge packets sent before the reaction: SND.NXT was 91.
    acknowledge(&mut control, 1001, (62, 91), QUEUED);
    assert!((control.cwnd() - before / 2.0).abs() < 1e-9);
}

#[test]
fn persistent_congestion_reduces_cwnd_to_one_packet() {
    let (mut control, _) = indicated();
    acknowledge(&mut control, 1001, (62, 120), QUEUED);
    assert!(control.cwnd() > 1.0);
    // The first round trip of packets sent after the reaction ends within the inference phase, which lasts until 1450
    // ms.
    acknowledge(&mut control, 1150, (121, 121), QUEUED);
    assert_eq!(control.cwnd(), 1.0);
}

#[test]
fn cwnd_stays_constant_during_inference_and_grows_afterwards() {
    let (mut control, before) = indicated();
    // The inference phase lasts three round trips of 150 ms, and the delay is low again.
    acknowledge(&mut control, 1010, (62, 130), BASE);
    assert!((control.cwnd() - before / 2.0).abs() < 1e-9);
    let window = control.cwnd();
    acknowledge(&mut control, 1451, (131, 131), BASE);
    assert!((control.cwnd() - (window + 1.0 / window)).abs() < 1e-9, "additive increase");
}

#[test]
fn a_delayed_ack_is_not_mistaken_for_a_queue() {
    // One packet in flight at a time; the receiver's timer delays each ACK by 40 ms.
    let mut control = Congestion::new(Algorithm::Lp, &config());
    acknowledge(&mut control, 900, (1, 60), BASE);
    let lone = |una, rtt| AckSample { nxt: una + 1, in_flight: 0, ..ack(1000, una, rtt) };
    control.handle_ack(&lone(61, BASE));
    for una in 62..=200 {
        let before = control.cwnd();
        control.handle_ack(&lone(una, BASE + 40));
        assert!(control.cwnd() >= before, "{una}");
    }
}

#[test]
fn a_loss_halves_cwnd_as_in_reno() {
    let mut control = Congestion::new(Algorithm::Lp, &config());
    for una in 1..=40 {
        control.handle_ack(&ack(una, una, BASE));
    }
    // Slow start: the initial window of 2, and one packet for each acknowledged one.
    assert_eq!(control.cwnd(), 42.0);
    control.handle_recovery(&event(at(100)));
    assert_eq!(control.cwnd(), 21.0);
}

#[test]
fn a_lone_lp_flow_uses_at_least_three_quarters_of_the_link() {
    // A window that is halved as soon as a queue stands varies between half a BDP and a full one: 3/4 on average.
    let mut flow =
        Flow::new(Congestion::new(Algorithm::Lp, &config()), 1000.0, Duration::from_millis(BASE));
    flow.run_until(at(60_000));
    let delivered = flow.run_until(at(120_000));
    assert!(delivered > 45_000, "{delivered} of 60000");
}
