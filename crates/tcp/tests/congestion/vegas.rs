use sweetspot_tcp::congestion::{Algorithm, Congestion, CongestionControl, Vegas};
use sweetspot_units::Duration;

use crate::harness::{Flow, at, config, event};

fn flow(rate: f64, rtt: u64) -> Flow {
    let control = Congestion::new(Algorithm::Vegas, &config());
    Flow::new(control, rate, Duration::from_millis(rtt))
}

#[test]
fn the_bottleneck_queue_holds_between_alpha_and_beta_packets() {
    for (rate, rtt) in [(1000.0, 50), (2000.0, 20), (500.0, 100)] {
        let mut flow = flow(rate, rtt);
        flow.run_until(at(30_000));
        let delivered = flow.run_until(at(40_000));
        assert!(delivered as f64 > 0.99 * rate * 10.0, "{delivered} at {rate}");
        // One packet is in service, which allows for a difference of one.
        let queued = flow.queued();
        assert!((Vegas::ALPHA - 1.0..=Vegas::BETA + 1.0).contains(&queued), "{queued} at {rate}");
    }
}

#[test]
fn cwnd_stays_at_the_bdp_plus_alpha_to_beta_packets() {
    // 1000 packets/s and 50 ms plus 1 ms of service: BDP = 51 packets.
    let mut flow = flow(1000.0, 50);
    flow.run_until(at(30_000));
    let mut seen = Vec::new();
    for second in 31..60 {
        flow.run_until(at(second * 1000));
        seen.push(flow.control.cwnd());
    }
    assert!(seen.iter().all(|w| (51.0..=55.0).contains(w)), "{seen:?}");
}

#[test]
fn a_loss_cuts_cwnd_by_a_quarter_and_a_timeout_to_one() {
    let mut flow = flow(1000.0, 50);
    flow.run_until(at(30_000));
    let before = flow.control.cwnd();
    flow.control.handle_recovery(&event(at(30_000)));
    assert!((flow.control.cwnd() - before * 0.75).abs() < 1e-9);
    flow.control.handle_timeout(&event(at(30_000)));
    assert_eq!(flow.control.cwnd(), 1.0);
}
