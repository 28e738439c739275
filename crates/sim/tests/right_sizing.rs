//! Heffner's receivers on a path: RTT measurement without timestamps, and a reader slower than the path. Static schemes that
//! measure their own input.

mod common;

use common::simulate;
use sweetspot_scenario::{Engine, Recorder, Sample, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_units::Duration;

/// A BDP of 875 kB, 604 segments.
const PATH: &str = r#"
    warmup = "10s"
    duration = "10s"
    [path]
    rate = "100Mbit/s"
    rtt = "70ms"
    buffer = "2000pkt"
    packet = "1500B"
    reverse = "clean"
    [tcp]
    delayed_ack = true
    timestamps = true
    header = "52B"
    [[transfer]]
    congestion = "sack"
"#;

const SEGMENT: f64 = 1448.0;

fn window(sizing: &str, writer: &str) -> f64 {
    let sizing = format!("transfer.0.sizing={sizing}");
    let writer = format!("transfer.0.writer=rate={writer}");
    simulate(PATH, &[&sizing, &writer]).transfers[0].window_final_bytes as f64 / SEGMENT
}

#[test]
fn the_window_edge_method_matches_timestamps_once_rwnd_was_the_limit() {
    // The window is the limit while it grows from four segments, and the lowest sample counts.
    for writer in ["200Mbit/s", "20Mbit/s", "2Mbit/s"] {
        let (timed, untimed) =
            (window("heffner:twice", writer), window("heffner:no-timestamps", writer));
        assert!((untimed / timed - 1.0).abs() < 0.02, "{writer}: {untimed} {timed}");
    }
}

#[test]
fn the_window_edge_method_overestimates_rtt_unless_rwnd_was_the_limit() {
    // 200 kbit/s are 1.2 segments per RTT, so an edge of 4 segments is passed only after more than three RTTs. With timestamps
    // the window is twice the 1 or 2 segments and four more, at most 12.
    let (timed, untimed) =
        (window("heffner:twice", "200kbit/s"), window("heffner:no-timestamps", "200kbit/s"));
    assert!(timed <= 12.0 && untimed > 1.5 * timed, "{untimed} {timed}");
}

#[derive(Default)]
struct Windows(Vec<f64>);

impl Recorder for Windows {
    fn interval(&self) -> Option<Duration> {
        Some(Duration::from_millis(10))
    }
    fn record(&mut self, sample: &Sample) {
        if sample.at_s >= 10.0 {
            self.0.push(sample.window_bytes as f64);
        }
    }
}

/// The share of the reader's rate that is reached, and the smallest and largest windows.
fn read_slowly(sizing: &str) -> (f64, f64, f64) {
    let overrides =
        [format!("transfer.0.sizing={sizing}"), "transfer.0.reader=rate=5Mbit/s".to_owned()];
    let scenario = Scenario::parse_with(PATH, &overrides).expect("it is a scenario");
    let mut windows = Windows::default();
    let outcome = Simulator.run(&scenario, &mut windows).expect("it can be run");
    let min = windows.0.iter().copied().fold(f64::INFINITY, f64::min);
    let max = windows.0.iter().copied().fold(0.0, f64::max);
    (outcome.transfers[0].goodput_bps / 5e6, min, max)
}

#[test]
fn a_slow_reader_reaches_a_steady_state_only_if_reads_are_counted() {
    // Heffner section 4.2.1: the window is the data read in a round trip, 5 Mbit/s x 70 ms = 43.75 kB, and the reader never
    // waits. The extra eight segments, and one segment of rounding, are 13 kB.
    let (rate, min, max) = read_slowly("heffner:read");
    assert!(rate > 0.97, "{rate}");
    assert!(min > 30e3 && max < 2.0 * 43.75e3, "{min} {max}");
    // `theory::host::heffner::slow_reader_growth`: with twice the arrivals the window oscillates until it is closed.
    let (rate, min, max) = read_slowly("heffner:twice");
    assert!(rate < 0.9, "{rate}");
    assert!(min < 1.0 && max > 3.0 * 43.75e3, "{min} {max}");
}

#[test]
fn wad_and_nlanr_measure_the_bdps_that_the_sobas_paper_states() {
    // Jain, Prasad, Dovrolis, section II: WAD is BDP_1, C T_m, and NLANR's scheme is closer to BDP_2, C T_e. The path has 50
    // Mbit/s x 100 ms, and the queue of ten sources of 3 Mbit/s adds some milliseconds. A train stretched by cross traffic
    // measures up to a tenth less.
    let path = r#"
        warmup = "5s"
        duration = "10s"
        [path]
        rate = "50Mbit/s"
        rtt = "100ms"
        buffer = "625pkt"
        [[cross]]
        kind = "poisson"
        count = 10
        rate = "3Mbit/s"
        [[transfer]]
        start = "5s"
    "#;
    let window = |sizing: &str| {
        let sizing = format!("transfer.0.sizing={sizing}");
        simulate(path, &[&sizing]).transfers[0].window_final_bytes as f64
    };
    for (scheme, product) in [("wad", "bdp1"), ("nlanr", "bdp2")] {
        let share = window(scheme) / window(product);
        assert!((0.88..1.05).contains(&share), "{scheme}: {share}");
    }
    assert!(window("nlanr") >= window("wad"), "{} {}", window("nlanr"), window("wad"));
}

#[test]
fn the_papers_sobas_does_not_mistake_renos_climb_for_saturation() {
    // Slow start overflows a tenth of a BDP. Reno then climbs by half a segment of 450 per RTT of 180 ms, for about 100 s. With
    // the paper's five seconds the climb would end at once, at 7.2 of 20 Mbit/s.
    let path = r#"
        duration = "150s"
        [path]
        rate = "20Mbit/s"
        rtt = "180ms"
        buffer = "0.1bdp"
        reverse = "clean"
        [tcp]
        delayed_ack = true
        [[transfer]]
        congestion = "sack"
        sizing = "sobas:paper"
    "#;
    let transfer = &simulate(path, &[]).transfers[0];
    assert!(transfer.goodput_bps > 13e6, "{}", transfer.goodput_bps);
}
