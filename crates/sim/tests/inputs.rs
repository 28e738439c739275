//! Connections through shared input links.

use sweetspot_scenario::{Engine, FinishedFlow, Outcome, Recorder, Sample, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_units::Duration;

/// Ten users of five servers, on two input links of 2 Mbit/s to a link of 10 Mbit/s.
const FAN: &str = r#"
    warmup = "5s"
    duration = "60s"
    [path]
    rate = "10Mbit/s"
    rtt = "60ms"
    delay = "10ms"
    buffer = "100pkt"
    packet = "1500B"
    reverse = "clean"
    [[cross]]
    kind = "closed-loop"
    users = 10
    inputs = 2
    input_rate = "2Mbit/s"
    servers = 5
    size_mean = "80kB"
    think_mean = "100ms"
    rtt = ["30ms", "110ms"]
    congestion = "sack"
"#;

#[derive(Default)]
struct Flows(Vec<FinishedFlow>);

impl Recorder for Flows {
    fn interval(&self) -> Option<Duration> {
        None
    }
    fn record(&mut self, _sample: &Sample) {}
    fn wants_flows(&self) -> bool {
        true
    }
    fn record_flow(&mut self, flow: &FinishedFlow) {
        self.0.push(flow.clone());
    }
}

fn simulate(overrides: &[&str]) -> (Outcome, Vec<FinishedFlow>) {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let scenario = Scenario::parse_with(FAN, &overrides).expect("the test's scenario is valid");
    let mut flows = Flows::default();
    let outcome = Simulator.run(&scenario, &mut flows).expect("the simulator runs it");
    (outcome, flows.0)
}

#[test]
fn the_input_links_together_bound_the_output_rate() {
    // More than one link of 2 Mbit/s can carry, and less than two.
    let (outcome, _) = simulate(&[]);
    let rate = outcome.cross[0].goodput_bps / 1e6;
    assert!(rate > 2.0 && rate < 4.0, "{rate}");
    // N_in C_in < C_out: no queue forms (router-buffer section VI-A), except for packets that
    // arrive together.
    assert_eq!(outcome.bottleneck.loss_rate, 0.0);
    assert!(outcome.bottleneck.queue_mean_packets < 0.5, "{:?}", outcome.bottleneck);
}

#[test]
fn connections_choose_servers_uniformly_at_random() {
    let (outcome, flows) = simulate(&["cross.0.input_rate=50Mbit/s"]);
    // Five RTTs evenly spaced from 30 to 110 ms, each equally likely.
    let mut counts = [0usize; 5];
    for flow in &flows {
        let place = (flow.propagation_s - 0.030) / 0.020;
        assert!((place - place.round()).abs() < 1e-6, "{flow:?}");
        counts[place.round() as usize] += 1;
    }
    // Binomial with p = 1/5: three standard deviations.
    let n = flows.len() as f64;
    let spread = 3.0 * (n * 0.2 * 0.8).sqrt();
    assert!(counts.iter().all(|c| (*c as f64 - n / 5.0).abs() < spread), "{counts:?}");
    assert_eq!(Some(flows.len() as u64), outcome.cross[0].completed);
}

#[test]
fn no_connection_finishes_faster_than_slow_start_allows() {
    // Router-buffer eq. (1): D(s) round trips for a window that begins at two.
    let (_, flows) = simulate(&["cross.0.input_rate=50Mbit/s"]);
    assert!(flows.len() > 100);
    for flow in &flows {
        // The SYN and the rounds of slow start; the last round takes only until its ACK.
        let rounds = 1.0 + (flow.packets as f64 / 2.0 + 1.0).log2().ceil();
        assert!(flow.duration_s >= rounds * flow.propagation_s, "{flow:?}");
    }
}

#[test]
fn connections_record_bottleneck_losses_in_order() {
    let (outcome, flows) = simulate(&["cross.0.input_rate=50Mbit/s", "path.buffer=5pkt"]);
    let losses: usize = flows.iter().map(|flow| flow.losses_s.len()).sum();
    assert!(losses > 0 && outcome.bottleneck.loss_rate > 0.0);
    let ordered = |flow: &FinishedFlow| flow.losses_s.windows(2).all(|pair| pair[0] <= pair[1]);
    assert!(flows.iter().all(ordered));
}

#[test]
fn recording_connections_changes_nothing() {
    let scenario = Scenario::parse(FAN).expect("the test's scenario is valid");
    let alone = Simulator.run(&scenario, &mut sweetspot_scenario::NoRecorder);
    assert_eq!(alone.as_ref(), Ok(&simulate(&[]).0));
}

/// Users that think for an hour finish at most their first transfers; the other kinds have none to finish.
#[test]
fn traffic_without_transfers_reports_no_completions() {
    let text = "duration = '2s'\n[path]\nrate = '10Mbit/s'\nrtt = '20ms'\nbuffer = '50pkt'\n\
                [[cross]]\nkind = 'poisson'\ncount = 2\nrate = '1Mbit/s'\n\
                [[cross]]\nkind = 'elephants'\ncount = 1\nwindow = '2pkt'\n\
                [[cross]]\nkind = 'closed-loop'\nusers = 1\nsize_mean = '1GB'\nthink_mean = '1h'";
    let outcome =
        Simulator.run(&Scenario::parse(text).unwrap(), &mut sweetspot_scenario::NoRecorder);
    let cross = outcome.unwrap().cross;
    let finished: Vec<_> =
        cross.iter().map(|entry| (entry.completed, entry.completion_mean_s)).collect();
    assert_eq!(finished, [(None, None), (None, None), (Some(0), None)]);
}
