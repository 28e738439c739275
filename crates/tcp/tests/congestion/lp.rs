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
        rtt: Some(Duration::from_millis(rtt)),
        cwnd_limited: true,
        ..AckSample::at(at(ms))
    }
}

/// A control whose window was halved by an early congestion indication at 1000 ms, and the window before.
fn indicated() -> (Congestion, f64) {
    let mut control = Congestion::new(Algorithm::Lp, &config());
    for una in 1..=40 {
        control.handle_ack(&ack(una, una, BASE));
    }
    let before = control.cwnd();
    // The range of delay is 100 ms; the moving average passes 50 + 0.15 x 100 = 65 ms with the second sample:
    // 50 x 7/8 + 150/8 = 62.5, 62.5 x 7/8 + 150/8 = 73.4.
    control.handle_ack(&ack(999, 41, QUEUED));
    assert!(control.cwnd() >= before, "one sample is no queue");
    let before = control.cwnd();
    control.handle_ack(&ack(1000, 42, QUEUED));
    (control, before)
}

#[test]
fn an_early_indication_halves_the_window_without_a_loss() {
    let (control, before) = indicated();
    assert!((control.cwnd() - before / 2.0).abs() < 1e-9, "{} of {before}", control.cwnd());
}

#[test]
fn one_round_trip_brings_one_reaction() {
    let (mut control, before) = indicated();
    // These acknowledge packets sent before the reaction: SND.NXT was 72.
    for una in 43..72 {
        control.handle_ack(&ack(1001, una, QUEUED));
    }
    assert!((control.cwnd() - before / 2.0).abs() < 1e-9);
}

#[test]
fn congestion_that_persists_leaves_one_packet() {
    let (mut control, _) = indicated();
    // The range is now 73.4 to 150 ms, its threshold 73.4 + 0.15 x 76.6 = 84.9 ms; the moving average goes
    // 83.0, 91.4.
    control.handle_ack(&ack(1150, 73, QUEUED));
    assert!(control.cwnd() > 1.0);
    control.handle_ack(&ack(1151, 74, QUEUED));
    assert_eq!(control.cwnd(), 1.0);
}

#[test]
fn the_window_rests_while_it_infers_and_grows_afterwards() {
    let (mut control, before) = indicated();
    // The inference phase lasts three round trips of 150 ms; the delay is low again.
    for step in 0..20_u64 {
        control.handle_ack(&ack(1010 + step, 43 + step, BASE));
    }
    assert!((control.cwnd() - before / 2.0).abs() < 1e-9);
    let window = control.cwnd();
    control.handle_ack(&ack(1451, 80, BASE));
    assert!((control.cwnd() - (window + 1.0 / window)).abs() < 1e-9, "additive increase");
}

#[test]
fn a_loss_takes_half_as_of_reno() {
    let mut control = Congestion::new(Algorithm::Lp, &config());
    for una in 1..=40 {
        control.handle_ack(&ack(una, una, BASE));
    }
    // Slow start: the initial window of 2 and a packet for each acknowledged.
    assert_eq!(control.cwnd(), 42.0);
    control.handle_recovery(&event(at(100)));
    assert_eq!(control.cwnd(), 21.0);
}

#[test]
fn alone_it_uses_three_quarters_of_a_link_and_more() {
    // A window that is halved as soon as a queue stands goes from half the BDP to all of it: 3/4 on average.
    let mut flow =
        Flow::new(Congestion::new(Algorithm::Lp, &config()), 1000.0, Duration::from_millis(BASE));
    flow.run_until(at(60_000));
    let delivered = flow.run_until(at(120_000));
    assert!(delivered > 45_000, "{delivered} of 60000");
}
