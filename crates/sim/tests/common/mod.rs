//! Scenarios for tests; each test gives only its differences.

use sweetspot_scenario::{Engine, NoRecorder, Outcome, Recorder, Scenario};
use sweetspot_sim::Simulator;

/// Figure 2 of the SOBAS paper without cross traffic: 50 Mbit/s, 100 ms, packets of 1000 bytes,
/// so that C x T_m is 625 packets.
#[allow(dead_code)]
pub const DUMBBELL: &str = r#"
    warmup = "20s"
    duration = "40s"
    [path]
    rate = "50Mbit/s"
    rtt = "100ms"
    buffer = "625pkt"
    [[transfer]]
    sizing = "fixed:450pkt"
"#;

/// Twenty window-limited transfers each way.
#[allow(dead_code)]
pub const ELEPHANTS: &str = r#"
    [[cross]]
    kind = "elephants"
    count = 20
    window = "22pkt"
    rtt = ["80ms", "120ms"]
"#;

/// Runs a scenario with overrides.
pub fn simulate(text: &str, overrides: &[&str]) -> Outcome {
    simulate_recorded(text, overrides, &mut NoRecorder)
}

/// As [`simulate`], with a recorder.
#[allow(dead_code)]
pub fn simulate_recorded(text: &str, overrides: &[&str], recorder: &mut impl Recorder) -> Outcome {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let scenario = Scenario::parse_with(text, &overrides).expect("the test's scenario is valid");
    Simulator.run(&scenario, recorder).expect("the simulator runs every scenario")
}

/// Goodput of the first transfer, Mbit/s.
#[allow(dead_code)]
pub fn goodput(text: &str, overrides: &[&str]) -> f64 {
    simulate(text, overrides).transfers[0].goodput_bps / 1e6
}
