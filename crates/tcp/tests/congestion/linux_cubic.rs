//! Behaviour of `net/ipv4/tcp_cubic.c` that is not in RFC 9438 or RFC 9406.

use sweetspot_tcp::congestion::{
    AckSample, CongestionConfig, CongestionControl, CongestionEvent, LinuxCubic,
};
use sweetspot_units::Duration;

use crate::harness::{ack, at, config, event};

fn settled_at(window: f64) -> LinuxCubic {
    LinuxCubic::new(&CongestionConfig {
        initial_window: window,
        initial_ssthresh: window,
        ..config()
    })
}

fn after_loss_at(window: f64) -> LinuxCubic {
    let mut cubic = settled_at(window);
    cubic.handle_recovery(&event(at(0)));
    cubic.handle_recovered(at(0));
    cubic
}

/// Acknowledges one window per round trip of `rtt` ms, until `end` ms.
fn clock(cubic: &mut LinuxCubic, rtt: u64, end: u64) {
    let mut now = 0;
    while now < end {
        let acks = cubic.cwnd() as u32;
        for i in 0..acks {
            let then = at(now) + Duration::from_millis(rtt).scaled(f64::from(i) / f64::from(acks));
            let rtt = Some(Duration::from_millis(rtt));
            cubic.handle_ack(&AckSample { rtt, in_flight: acks, ..ack(then) });
        }
        now += rtt;
    }
}

#[test]
fn cwnd_drops_by_three_tenths_on_loss_and_recovers_in_k_seconds() {
    // 1000 * 717 / 1024 = 700; K = cbrt(300 / 0.4) = 9.086 s.
    let mut cubic = after_loss_at(1000.0);
    assert_eq!((cubic.cwnd(), cubic.ssthresh()), (700.0, 700.0));
    clock(&mut cubic, 200, 9000);
    assert!((cubic.cwnd() - 1000.0).abs() < 5.0, "{}", cubic.cwnd());
}

#[test]
fn before_the_first_loss_cwnd_grows_by_a_twentieth_per_rtt() {
    // The curve alone adds 0.4 packets in the first second; cnt <= 20 makes it 1.05 per round trip.
    let mut cubic = settled_at(100.0);
    clock(&mut cubic, 100, 1000);
    let expected = 100.0 * libm::pow(1.05, 10.0);
    assert!((cubic.cwnd() - expected).abs() < 4.0, "{} {expected}", cubic.cwnd());
    // After a loss only the curve counts: below it, on a long path, the window grows much more slowly.
    let mut later = after_loss_at(100.0);
    let before = later.cwnd();
    clock(&mut later, 100, 300);
    assert!(later.cwnd() < before * 1.05 * 1.05, "{}", later.cwnd());
}

#[test]
fn the_reno_friendly_window_keeps_its_slope_above_w_max() {
    // 15/8 windows of ACKs per packet (`beta_scale`): 14 + 30 * 8 / 15 = 30 after thirty round trips. RFC 9438
    // takes a packet per round trip from 20 on, and is at 39.
    let mut cubic = after_loss_at(20.0);
    clock(&mut cubic, 10, 300);
    assert!((28.0..=32.0).contains(&cubic.cwnd()), "{}", cubic.cwnd());
}

#[test]
fn idle_time_does_not_count() {
    // `cubictcp_cwnd_event`: a minute without traffic does not move the curve.
    let mut cubic = after_loss_at(1000.0);
    clock(&mut cubic, 200, 2000);
    let before = cubic.cwnd();
    let rtt = Some(Duration::from_millis(200));
    cubic.handle_ack(&AckSample { rtt, in_flight: 0, ..ack(at(2000)) });
    cubic.handle_ack(&AckSample { rtt, in_flight: 100, ..ack(at(62_000)) });
    assert!(cubic.cwnd() - before <= 1.0, "{before} {}", cubic.cwnd());
}

/// The window at which slow start ended, if the ACKs of a window arrive `gap` apart after a round trip of
/// `rtt`.
fn left_slow_start_at(rtt: Duration, gap: Duration, paced: bool) -> f64 {
    let mut cubic = LinuxCubic::new(&CongestionConfig { initial_window: 10.0, ..config() });
    let (mut una, mut start) = (0, at(0));
    for _ in 0..12 {
        start += rtt;
        let window = cubic.cwnd() as u64;
        for i in 0..window {
            una += 1;
            let (now, nxt) = (start + gap * i, una + window + i);
            cubic.handle_ack(&AckSample { rtt: Some(rtt), una, nxt, paced, ..ack(now) });
            if cubic.ssthresh().is_finite() {
                return cubic.cwnd();
            }
        }
    }
    f64::INFINITY
}

#[test]
fn an_ack_train_of_half_the_rtt_ends_slow_start() {
    // 100 ms at a packet per ms: half of it, and the millisecond that four segments may take, are 51 packets of
    // ACKs. Rounds begin with 10, 20, 40 and 80, so the fourth is the first that is long enough.
    let (rtt, gap) = (Duration::from_millis(100), Duration::from_millis(1));
    let window = left_slow_start_at(rtt, gap, false);
    assert!((80.0 + 45.0..=80.0 + 60.0).contains(&window), "{window}");
    // Paced packets may have left as late as half a round trip, so a whole round trip must pass.
    let paced = left_slow_start_at(rtt, gap, true);
    assert!(paced > 160.0 + 80.0, "{paced}");
    // ACKs more than two milliseconds apart are no train.
    assert_eq!(left_slow_start_at(rtt, Duration::from_millis(3), false), f64::INFINITY);
}

#[test]
fn an_rtt_rise_of_an_eighth_ends_slow_start() {
    let mut cubic = LinuxCubic::new(&CongestionConfig { initial_window: 32.0, ..config() });
    let round = |cubic: &mut LinuxCubic, number: u64, rtt: u64| {
        for i in 0..20 {
            let (una, nxt) = (number * 100 + i + 1, (number + 1) * 100);
            let rtt = Some(Duration::from_millis(rtt));
            cubic.handle_ack(&AckSample { rtt, una, nxt, ..ack(at(number * 1000 + 3 * i)) });
        }
    };
    // 80 ms / 8 = 10 ms.
    round(&mut cubic, 0, 80);
    round(&mut cubic, 1, 90);
    assert_eq!(cubic.ssthresh(), f64::INFINITY);
    round(&mut cubic, 2, 91);
    assert!(cubic.ssthresh().is_finite());
}

#[test]
fn a_timeout_lowers_ssthresh_once_per_window_and_resets_the_curve() {
    let mut cubic = after_loss_at(1000.0);
    let again = CongestionEvent { reduced: true, ..event(at(10)) };
    cubic.handle_timeout(&again);
    assert_eq!((cubic.cwnd(), cubic.ssthresh()), (1.0, 700.0));
    let mut cubic = after_loss_at(1000.0);
    cubic.handle_timeout(&event(at(10)));
    assert_eq!((cubic.cwnd(), cubic.ssthresh()), (1.0, 490.0));
}
