use sweetspot_tcp::congestion::{
    AckSample, Algorithm, Congestion, CongestionConfig, CongestionControl, CongestionEvent, Cubic,
};
use sweetspot_units::Duration;

use crate::harness::{Flow, ack, at, config, event};

fn after_loss_at(window: f64) -> Cubic {
    let mut cubic = Cubic::new(&CongestionConfig { initial_window: window, ..config() });
    cubic.handle_recovery(&event(at(0)));
    cubic.handle_recovered(at(0));
    cubic
}

/// Runs ACK-clocked, with one window of ACKs per round trip of `rtt` ms, until `end` ms.
fn clock(cubic: &mut Cubic, rtt: u64, end: u64) {
    let mut now = 0;
    while now < end {
        let acks = cubic.cwnd() as u32;
        for i in 0..acks {
            let then = at(now) + Duration::from_millis(rtt).scaled(f64::from(i) / f64::from(acks));
            cubic.handle_ack(&AckSample { rtt: Some(Duration::from_millis(rtt)), ..ack(then) });
        }
        now += rtt;
    }
}

#[test]
fn a_loss_reduces_cwnd_by_three_tenths() {
    let cubic = after_loss_at(100.0);
    assert!((cubic.cwnd() - 70.0).abs() < 1e-9);
    assert!((cubic.ssthresh() - 70.0).abs() < 1e-9);
}

#[test]
fn cwnd_returns_to_w_max_after_k_seconds() {
    // W_max = 1000, so K = cbrt(1000 * 0.3 / 0.4) = cbrt(750) = 9.086 s. With a long RTT the
    // Reno-friendly window stays below: 0.529 packets per 200 ms are 24 after 9 s.
    let mut cubic = after_loss_at(1000.0);
    clock(&mut cubic, 200, 9086);
    assert!((cubic.cwnd() - 1000.0).abs() < 2.0, "{}", cubic.cwnd());
}

#[test]
fn the_curve_is_concave_below_w_max_and_convex_above() {
    // W_cubic(t) = 0.4 (t - 9.086)^3 + 1000: at t = 4.6 it is 1000 - 0.4 * 90.3 = 963.9, at
    // t = 13.8 it is 1000 + 0.4 * 104.8 = 1041.9.
    for (end, expected) in [(4600, 963.9), (13_800, 1041.9)] {
        let mut cubic = after_loss_at(1000.0);
        clock(&mut cubic, 200, end);
        assert!((cubic.cwnd() - expected).abs() < 0.5, "{} {expected}", cubic.cwnd());
    }
}

#[test]
fn a_second_loss_below_w_max_triggers_fast_convergence() {
    // First loss at 1000: W_max = 1000, cwnd = 700. Second at 700: W_max = 700 * 0.85 = 595,
    // cwnd = 490, K = cbrt((595 - 490) / 0.4) = cbrt(262.5) = 6.403 s.
    let mut cubic = after_loss_at(1000.0);
    cubic.handle_recovery(&event(at(0)));
    cubic.handle_recovered(at(0));
    assert!((cubic.cwnd() - 490.0).abs() < 1e-9);
    clock(&mut cubic, 200, 6403);
    assert!((cubic.cwnd() - 595.0).abs() < 2.0, "{}", cubic.cwnd());
}

#[test]
fn on_a_short_path_cubic_grows_like_reno() {
    // W_max = 20, RTT 10 ms: the cubic curve gains less than 6 in its K = cbrt(15) = 2.47 s,
    // Reno's estimate 3 * 0.3 / 1.7 = 0.529 per 10 ms reaches 20 from 14 in 11.3 round trips.
    let mut cubic = after_loss_at(20.0);
    clock(&mut cubic, 10, 120);
    assert!(cubic.cwnd() > 19.5, "{}", cubic.cwnd());
    // From there alpha is 1: one packet per round trip, ten in 100 ms.
    let before = cubic.cwnd();
    let mut later = cubic.clone();
    clock(&mut later, 10, 100);
    assert!((later.cwnd() - before - 10.0).abs() < 1.0, "{} {}", before, later.cwnd());
}

#[test]
fn past_slow_start_one_ack_adds_at_most_half_a_packet() {
    // target <= 1.5 cwnd, so (target - cwnd) / cwnd <= 0.5 (section 4.2).
    let mut cubic = after_loss_at(10.0);
    let before = cubic.cwnd();
    cubic.handle_ack(&ack(at(0)));
    let after_first = cubic.cwnd();
    cubic.handle_ack(&ack(at(100_000)));
    assert!(after_first - before <= 0.5 + 1e-9);
    // The Reno-friendly estimate grows by a packet per window, so only the cubic bound counts.
    assert!(cubic.cwnd() - after_first <= 0.5 + 1e-9);
}

#[test]
fn application_limited_time_does_not_count() {
    let mut cubic = after_loss_at(1000.0);
    clock(&mut cubic, 200, 2000);
    let before = cubic.cwnd();
    cubic.handle_ack(&AckSample { cwnd_limited: false, ..ack(at(60_000)) });
    assert_eq!(cubic.cwnd(), before);
    cubic.handle_ack(&ack(at(60_001)));
    assert!(cubic.cwnd() - before < 0.1, "{} {}", before, cubic.cwnd());
}

#[test]
fn the_reduction_starts_from_the_window_in_use() {
    // A receiver's window of 50 packets: 0.7 * 50 = 35, independent of the congestion window.
    let mut cubic = Cubic::new(&CongestionConfig { initial_window: 400.0, ..config() });
    cubic.handle_recovery(&CongestionEvent { window: 50.0, ..event(at(0)) });
    assert!((cubic.cwnd() - 35.0).abs() < 1e-9);
}

#[test]
fn after_a_timeout_the_curve_starts_where_slow_start_ends() {
    let mut cubic = after_loss_at(1000.0);
    cubic.handle_timeout(&event(at(0)));
    assert_eq!(cubic.cwnd(), 1.0);
    // ssthresh = 0.7 * 700 = 490. Slow start reaches it in 489 ACKs. Then K = 0: the curve is flat,
    // and 0.4 higher a second later.
    for _ in 0..489 {
        cubic.handle_ack(&AckSample { rtt: None, ..ack(at(0)) });
    }
    assert!((cubic.cwnd() - 490.0).abs() < 1e-6, "{}", cubic.cwnd());
    clock(&mut cubic, 200, 1000);
    // alpha is 0.529 below cwnd_prior = 700: five windows of ACKs add 2.6.
    assert!((490.0..494.0).contains(&cubic.cwnd()), "{}", cubic.cwnd());
}

#[test]
fn slow_start_ends_without_a_loss_on_an_unbounded_queue() {
    // 1000 packets/s, 100 ms: BDP 101 packets. The window doubles 2, 4 ... 128; the round that
    // starts with 128 is the first over a full pipe. Its ACKs arrive while the window grows to 256.
    // They show the queue after the eighth ACK of the next round at the latest: 264. Five rounds at
    // a quarter of the growth rate are a factor of 1.25^5 = 3.05: 806 packets.
    let control = Congestion::new(Algorithm::Cubic, &config());
    let mut flow = Flow::new(control, 1000.0, Duration::from_millis(100));
    let left_at = (0..5000).find_map(|tick| {
        flow.run_until(at(tick));
        flow.control.ssthresh().is_finite().then(|| flow.control.cwnd())
    });
    let left_at = left_at.expect("slow start ends");
    assert!((101.0..=806.0).contains(&left_at), "{left_at}");
}
