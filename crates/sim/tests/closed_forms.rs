//! Without cross traffic, R(S) follows equations (4) and (5) of the SOBAS paper.

mod common;

use common::{DUMBBELL, goodput};
use sweetspot_scenario::{Engine, Recorder, Sample, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_units::Duration;

/// C, Mbit/s, and C x T_m in packets.
const C: f64 = 50.0;
const BDP: f64 = 625.0;

/// Measured for `seconds`, after the effects of slow start.
fn simulated(window: u64, buffer: u64, congestion: &str, seconds: u64) -> f64 {
    goodput(
        DUMBBELL,
        &[
            &format!("transfer.0.sizing=fixed:{window}pkt"),
            &format!("path.buffer={buffer}pkt"),
            &format!("transfer.0.congestion={congestion}"),
            "warmup=60s",
            &format!("duration={seconds}s"),
        ],
    )
}

#[test]
fn below_and_inside_the_sweet_spot_throughput_follows_equation_4() {
    for buffer in [100, 313, 625, 1250] {
        for window in [313, 500, 600, 640, 625 + buffer / 2, 625 + buffer] {
            // R(S) = S / T_m up to C T_m, then C up to C T_m + B_t.
            let expected = C * (window as f64 / BDP).min(1.0);
            let found = simulated(window, buffer, "reno", 20);
            let error = found / expected - 1.0;
            assert!(error.abs() < 0.02, "S={window} B={buffer}: {found}, expected {expected}");
        }
    }
}

#[test]
fn well_above_the_sweet_spot_throughput_follows_the_sawtooth() {
    for buffer in [100u64, 313, 625, 1250] {
        let b = buffer as f64;
        // Equation (4), third case, below C T_m of buffer; equation (5) above.
        let sum = BDP + b;
        let expected = if b < BDP { 0.75 * C * sum * sum / (sum * sum - b * BDP) } else { C };
        for congestion in ["newreno", "sack"] {
            let found = simulated(2 * (625 + buffer), buffer, congestion, 240);
            let error = found / expected - 1.0;
            assert!(error.abs() < 0.10, "{congestion} B={buffer}: {found}, expected {expected}");
        }
    }
}

#[test]
fn just_above_the_sweet_spot_window_limited_reno_loses_throughput() {
    // ns-2.35 with B_t = 313: 36.74 Mbit/s at S = C T_m + B_t + 1 = 939 and 47.90 at 4000. During recovery the window stops new
    // data; half of it then leaves in one burst, which overflows the buffer again.
    let (edge, hole, far) = (
        simulated(938, 313, "reno", 240),
        simulated(939, 313, "reno", 240),
        simulated(4000, 313, "reno", 240),
    );
    assert!((edge - 50.0).abs() < 0.5, "{edge}");
    assert!((hole / 36.74 - 1.0).abs() < 0.02, "{hole}");
    assert!((far / 47.90 - 1.0).abs() < 0.02, "{far}");
}

/// The times at which the window was reduced during a run of a congestion-limited Reno.
struct Cuts(Vec<f64>, f64);

impl Recorder for Cuts {
    fn interval(&self) -> Option<Duration> {
        Some(Duration::from_millis(20))
    }

    fn record(&mut self, sample: &Sample) {
        // Congestion avoidance never reduces the window by a tenth.
        if sample.cwnd_packets < 0.9 * self.1 {
            self.0.push(sample.at_s);
        }
        self.1 = sample.cwnd_packets;
    }
}

#[test]
fn the_sawtooths_period_and_loss_rate_follow_equations_12_to_16() {
    // The paper's 50 Mbit/s and 100 ms would take minutes per period, so this uses a tenth of the rate.
    let (rate, bdp) = (5.0e6 / 8000.0, 62.5);
    for buffer in [30u64, 60, 120] {
        let b = buffer as f64;
        let peak = bdp + b;
        // Eq. (13): N_V = 3/8 (C T_m + B_t)^2 packets per period, eq. (14): one of them is lost.
        let packets = 0.375 * peak * peak;
        // Eq. (16) over-buffered, appendix I 3-b under-buffered, in packets at C.
        let service = if b >= bdp { packets } else { (bdp * bdp + bdp * b + b * b) / 2.0 };
        let overrides = [
            "path.rate=5Mbit/s".to_owned(),
            format!("path.buffer={buffer}pkt"),
            "transfer.0.sizing=max".to_owned(),
            "transfer.0.congestion=newreno".to_owned(),
            "warmup=100s".to_owned(),
            "duration=600s".to_owned(),
        ];
        let scenario = Scenario::parse_with(DUMBBELL, &overrides).unwrap();
        let mut cuts = Cuts(Vec::new(), 0.0);
        let outcome = Simulator.run(&scenario, &mut cuts).unwrap();
        let cuts: Vec<f64> = cuts.0.into_iter().filter(|at| *at > 100.0).collect();
        let period = (cuts[cuts.len() - 1] - cuts[0]) / (cuts.len() - 1) as f64;
        let expected = service / rate;
        // The model has one loss in the first packet of a round and no fast recovery. In fast recovery the window is constant
        // for a round trip, about 2/peak of the period.
        assert!((period / expected - 1.0).abs() < 0.1, "B={buffer}: {period} s, {expected} s");
        let loss = outcome.transfers[0].loss_rate * packets;
        assert!((loss - 1.0).abs() < 0.1, "B={buffer}: {loss} of eq. (14)'s");
        // Eq. (12): the window grows by one packet per round trip.
        assert!(outcome.transfers[0].timeouts == 0);
    }
}

#[test]
fn jitter_lengthens_the_mean_rtt_of_single_packets_by_its_mean() {
    let simulate = |jitter: &str| {
        let jitter = format!("path.jitter={jitter}");
        let set = ["transfer.0.sizing=fixed:1pkt", "duration=600s", &jitter];
        let transfer = common::simulate(DUMBBELL, &set).transfers.remove(0);
        (transfer.rtt_mean_s, transfer.goodput_bps)
    };
    let (min, _) = simulate("0ms");
    let (mean, goodput) = simulate("20ms");
    // Twice 10 ms on average. A draw has a standard deviation of 20 ms / sqrt(12), a round trip has two draws, and 600 s have
    // 5000 round trips of 120 ms: a standard error of 0.12 ms.
    assert!((mean - min - 0.020).abs() < 5.0 * 0.12e-3, "{min} {mean}");
    // R = S / T, eq. (3), with packets of 1000 bytes.
    assert!((goodput * mean / 8000.0 - 1.0).abs() < 0.01, "{goodput}");
}

/// The largest congestion window of a run.
struct LargestWindow(f64);

impl Recorder for LargestWindow {
    fn interval(&self) -> Option<Duration> {
        Some(Duration::from_millis(20))
    }

    fn record(&mut self, sample: &Sample) {
        self.0 = self.0.max(sample.cwnd_packets);
    }
}

/// Linux's `tcp_is_cwnd_limited`, after RFC 7661. While the receiver's 450 packets are the limit, slow start ends below twice
/// that number, and the window does not grow afterwards. An ACK may raise the window above that by the two packets that it
/// acknowledges. ns-2 has no such rule.
#[test]
fn a_linux_cwnd_stays_below_twice_the_limiting_window() {
    for congestion in ["reno", "cubic", "sack", "vegas", "lp"] {
        let largest = |flavour: &str| {
            let overrides = [
                format!("transfer.0.congestion={congestion}"),
                format!("transfer.0.flavour={flavour}"),
                "duration=60s".to_owned(),
            ];
            let scenario = Scenario::parse_with(DUMBBELL, &overrides).unwrap();
            let mut found = LargestWindow(0.0);
            Simulator.run(&scenario, &mut found).unwrap();
            found.0
        };
        let kernel = largest("linux");
        assert!(kernel <= 902.0, "{congestion}: {kernel}");
        if congestion == "reno" {
            assert!(largest("ns2") > 10_000.0);
        }
    }
}
