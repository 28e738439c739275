use sweetspot_tcp::congestion::{Algorithm, Congestion, CongestionConfig, CongestionControl};
use sweetspot_units::Duration;

use crate::harness::{Flow, at, config, event};

fn flow(rate: f64, rtt: u64) -> Flow {
    let config = CongestionConfig { initial_window: 10.0, ..config() };
    let control = Congestion::new(Algorithm::Bbr, &config);
    Flow::new(control, rate, Duration::from_millis(rtt))
}

fn pacing(flow: &Flow) -> f64 {
    flow.control.pacing_rate().expect("BBR paces").as_f64() / 8000.0
}

#[test]
fn bbr_finds_the_bottleneck_rate() {
    for (rate, rtt) in [(1000.0, 50), (10_000.0, 20), (200.0, 200)] {
        let mut flow = flow(rate, rtt);
        flow.run_until(at(5000));
        let delivered = flow.run_until(at(9000));
        assert!(delivered as f64 > 0.97 * rate * 4.0, "{delivered} at {rate}");
        // The pacing rate is the bottleneck's times one of the gains 1.25, 0.75, 1.
        let gain = pacing(&flow) / rate;
        assert!([0.75, 1.0, 1.25].iter().any(|g| (gain - g).abs() < 0.02), "{gain} at {rate}");
    }
}

#[test]
fn startup_finds_the_rate_in_logarithmically_many_rtts() {
    // 10 packets in 50 ms are 200/s; 10,000/s is 50 times that: log2(50) = 5.6 round trips of
    // doubling, and three to detect that the rate no longer grows.
    let mut flow = flow(10_000.0, 50);
    flow.run_until(at(50 * 11));
    let delivered = flow.run_until(at(50 * 21));
    assert!(delivered as f64 > 0.95 * 10_000.0 * 0.5, "{delivered}");
}

#[test]
fn probing_queues_at_most_a_quarter_bdp_plus_three_quanta() {
    // BDP = 1000/s * 51 ms = 51 packets. The probing phase lasts until 1.25 BDP and three quanta
    // are in flight. At 8 Mbit/s a quantum is two packets: 12.75 + 6 wait, and one is in service.
    let mut flow = flow(1000.0, 50);
    flow.run_until(at(3000));
    let mut worst: f64 = 0.0;
    for tick in 0..4000 {
        flow.run_until(at(3000 + tick));
        worst = worst.max(flow.queued());
    }
    assert!(worst <= 12.75 + 6.0 + 1.5, "{worst}");
}

#[test]
fn probe_rtt_lowers_cwnd_to_four_packets_every_ten_seconds() {
    let mut flow = flow(1000.0, 50);
    let mut lowest = f64::INFINITY;
    flow.run_until(at(5000));
    for tick in 0..12_000 {
        flow.run_until(at(5000 + tick));
        lowest = lowest.min(flow.control.cwnd());
    }
    assert_eq!(lowest, 4.0);
    // Afterwards the rate returns to the bottleneck's.
    let delivered = flow.run_until(at(19_000));
    assert!(delivered as f64 > 0.97 * 2000.0, "{delivered}");
}

#[test]
fn probing_finds_a_higher_rate() {
    let mut flow = flow(1000.0, 50);
    flow.run_until(at(4000));
    flow.set_rate(2000.0);
    // Each cycle of eight round trips (0.4 s) gains a quarter: log(2)/log(1.25) = 3.1 cycles.
    flow.run_until(at(7000));
    let delivered = flow.run_until(at(9000));
    assert!(delivered as f64 > 0.95 * 4000.0, "{delivered}");
}

#[test]
fn a_lower_rate_is_adopted_after_ten_rtts() {
    let mut flow = flow(2000.0, 50);
    flow.run_until(at(4000));
    flow.set_rate(1000.0);
    flow.run_until(at(8000));
    let gain = pacing(&flow) / 1000.0;
    assert!((0.74..=1.27).contains(&gain), "{gain}");
}

#[test]
fn a_loss_keeps_the_pacing_rate_and_cwnd_recovers() {
    let mut flow = flow(1000.0, 50);
    flow.run_until(at(3000));
    let (window, rate) = (flow.control.cwnd(), pacing(&flow));
    flow.control.handle_recovery(&event(at(3000)));
    assert_eq!(pacing(&flow), rate);
    flow.control.handle_recovered(at(3000));
    assert_eq!(flow.control.cwnd(), window);
}
