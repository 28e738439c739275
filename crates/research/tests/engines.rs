//! Closed forms and the simulator agree on the same scenarios.

use sweetspot_scenario::{Engine, EngineError, NoRecorder, Outcome, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_theory::engine::Theory;

/// The SOBAS paper's path: 50 Mbit/s, 100 ms, C T_m = 625 packets, B_t = 625.
const PATH: &str = r#"
    warmup = "60s"
    duration = "120s"
    [path]
    rate = "50Mbit/s"
    rtt = "100ms"
    buffer = "625pkt"
    [[transfer]]
    sizing = "fixed:450pkt"
"#;

const ELEPHANTS: &str = r#"
    [[cross]]
    kind = "elephants"
    count = 20
    window = "22pkt"
    rtt = ["80ms", "120ms"]
"#;

const POISSON: &str = r#"
    [[cross]]
    kind = "poisson"
    count = 10
    rate = "1.5Mbit/s"
"#;

const MICE: &str = r#"
    [[cross]]
    kind = "mice"
    count = 100
    packets = [10, 15]
    sleep = "5s"
"#;

fn scenario(text: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    Scenario::parse_with(text, &overrides).expect("the test's scenario is valid")
}

fn both(text: &str, overrides: &[&str]) -> (Outcome, Outcome) {
    let scenario = scenario(text, overrides);
    let theory = Theory.run(&scenario, &mut NoRecorder).expect("a closed form covers this");
    let sim = Simulator.run(&scenario, &mut NoRecorder).expect("the simulator runs everything");
    (theory, sim)
}

/// Goodput of the first transfer in both engines, and the relative error of theory.
fn off(text: &str, overrides: &[&str]) -> (f64, f64, f64) {
    let (theory, sim) = both(text, overrides);
    let (theory, sim) = (theory.transfers[0].goodput_bps, sim.transfers[0].goodput_bps);
    (theory / 1e6, sim / 1e6, theory / sim - 1.0)
}

fn refused(text: &str, overrides: &[&str]) -> String {
    let error = Theory.run(&scenario(text, overrides), &mut NoRecorder).unwrap_err();
    assert!(matches!(error, EngineError::NotCovered { .. }), "{error}");
    error.to_string()
}

#[test]
fn goodput_and_rtt_agree_within_1_percent_up_to_overflow() {
    // Equation (4), first and second case. A fluid model ignores a difference of one packet in flight: 1/100 of the
    // smallest window.
    for window in [100, 313, 450, 620, 700, 1249] {
        let sizing = format!("transfer.0.sizing=fixed:{window}pkt");
        let (theory, sim) = both(PATH, &[&sizing]);
        let (t, s) = (&theory.transfers[0], &sim.transfers[0]);
        assert!((t.goodput_bps / s.goodput_bps - 1.0).abs() < 0.01, "{window}: {t:?} {s:?}");
        assert!((t.rtt_mean_s / s.rtt_mean_s - 1.0).abs() < 0.01, "{window}: {t:?} {s:?}");
        assert_eq!(s.loss_rate, 0.0);
        let queues = (theory.bottleneck.queue_mean_packets, sim.bottleneck.queue_mean_packets);
        assert!((queues.0 - queues.1).abs() < 7.0, "{window}: {queues:?}");
        let used = (theory.bottleneck.utilisation, sim.bottleneck.utilisation);
        assert!((used.0 - used.1).abs() < 0.01, "{window}: {used:?}");
    }
}

#[test]
fn the_sawtooth_beyond_the_sweet_spot_differs_only_by_recovery_time() {
    // Equations (5) and (17) let the window halve and grow again immediately. Recovery takes one RTT per period of (C T_m
    // + B_t) / 2 RTTs: less than 1 % here. The rest of the bound allows for the few periods in 240 s, the last of them
    // incomplete.
    for buffer in [100, 313, 625] {
        let buffer = format!("path.buffer={buffer}pkt");
        let long = ["transfer.0.sizing=max", "duration=240s", "transfer.0.congestion=sack"];
        let overrides = [long[0], long[1], long[2], &buffer];
        let (theory, sim, off) = off(PATH, &overrides);
        assert!(off.abs() < 0.05, "{buffer}: {theory} {sim}");
        let (theory, sim) = both(PATH, &overrides);
        let rtt = theory.transfers[0].rtt_mean_s / sim.transfers[0].rtt_mean_s - 1.0;
        assert!(rtt.abs() < 0.10, "{buffer}: RTT off by {rtt}");
    }
}

#[test]
fn theory_and_simulator_agree_on_short_paths_with_large_packets() {
    // C T_m = 10 Mbit/s x 10 ms = 12.5 kB = 8.3 packets of 1500 bytes; a packet takes 1.2 ms.
    let small = ["path.rate=10Mbit/s", "path.rtt=10ms", "path.packet=1500B", "path.buffer=20pkt"];
    for window in [2, 4, 8, 16, 27] {
        let sizing = format!("transfer.0.sizing=fixed:{window}pkt");
        let overrides = [small[0], small[1], small[2], small[3], &sizing];
        let (theory, sim, off) = off(PATH, &overrides);
        assert!(off.abs() < 0.02, "{window}: {theory} {sim}");
    }
}

#[test]
fn static_sizings_get_the_window_that_their_name_implies() {
    for sizing in ["bdp1", "bdp2", "bdp3", "bdp4", "bdp5", "bdp", "bdp6", "kernel"] {
        let sizing = format!("transfer.0.sizing={sizing}");
        let (theory, sim, off) = off(PATH, &[&sizing, "transfer.0.congestion=sack"]);
        // Sizings such as bdp1 are at the edge of the sweet spot, where a single packet matters.
        assert!(off.abs() < 0.05, "{sizing}: {theory} {sim}");
    }
}

#[test]
fn theory_and_simulator_agree_on_elephants_until_the_buffer_overflows() {
    // A fluid model ignores packet bursts, which matter most near the onset of queueing: at A T_e = 160 packets.
    let text = format!("{PATH}{ELEPHANTS}");
    for (window, bound) in [(100, 0.02), (180, 0.05), (300, 0.02), (450, 0.02)] {
        let sizing = format!("transfer.0.sizing=fixed:{window}pkt");
        let (theory, sim, off) = off(&text, &[&sizing]);
        assert!(off.abs() < bound, "{window}: {theory} {sim}");
        let (theory, sim) = both(&text, &[&sizing]);
        let rtt = theory.transfers[0].rtt_mean_s / sim.transfers[0].rtt_mean_s - 1.0;
        assert!(rtt.abs() < 0.05, "{window}: RTT off by {rtt}");
    }
}

#[test]
fn the_simulator_loses_packets_if_theory_predicts_an_overflow() {
    // Half of the elephants' ACKs and data share a buffer of 625 or 313 packets.
    let text = format!("{PATH}{ELEPHANTS}");
    for (buffer, fits, overflows) in [(625, 530, 640), (313, 320, 390)] {
        let buffer = format!("path.buffer={buffer}pkt");
        let of = |window| format!("transfer.0.sizing=fixed:{window}pkt");
        let (_, sim) = both(&text, &[&buffer, &of(fits)]);
        assert_eq!(sim.bottleneck.loss_rate, 0.0, "{buffer} {fits}");
        assert!(refused(&text, &[&buffer, &of(overflows)]).contains("overflows"));
        let scenario = scenario(&text, &[&buffer, &of(overflows)]);
        let sim = Simulator.run(&scenario, &mut NoRecorder).expect("the simulator runs it");
        assert!(sim.bottleneck.loss_rate > 0.0, "{buffer} {overflows}");
    }
}

#[test]
fn unresponsive_traffic_leaves_the_rest_of_the_capacity() {
    // 15 of 50 Mbit/s: A T_e = 437 packets, A (T_e + B/C) = 875. Bursts of Poisson traffic are of the order of sqrt(n)
    // packets.
    let text = format!("{PATH}{POISSON}");
    for (window, bound) in [(100, 0.02), (300, 0.03), (500, 0.03), (800, 0.02)] {
        let sizing = format!("transfer.0.sizing=fixed:{window}pkt");
        let (theory, sim, off) = off(&text, &[&sizing]);
        assert!(off.abs() < bound, "{window}: {theory} {sim}");
    }
}

#[test]
fn goodput_under_random_loss_follows_pftk() {
    // The formula's authors found it within a quarter of their traces at these loss rates.
    for loss in ["0.0003", "0.001", "0.003", "0.01"] {
        let loss = format!("path.loss={loss}");
        let (theory, sim, off) =
            off(PATH, &[&loss, "transfer.0.sizing=max", "transfer.0.congestion=sack"]);
        assert!(off.abs() < 0.25, "{loss}: {theory} {sim}");
    }
    // A window below the one that loss permits is the limit: 20 packets per 100 ms.
    let (theory, sim, off) = off(PATH, &["path.loss=0.0001", "transfer.0.sizing=fixed:20pkt"]);
    assert!(off.abs() < 0.05, "{theory} {sim}");
}

#[test]
fn transfers_share_in_proportion_to_windows_that_fit_the_buffer() {
    let text = format!("{PATH}[[transfer]]\nsizing = \"fixed:225pkt\"\n");
    for first in [100, 450, 900] {
        let sizing = format!("transfer.0.sizing=fixed:{first}pkt");
        let (theory, sim) = both(&text, &[&sizing]);
        for (t, s) in theory.transfers.iter().zip(&sim.transfers) {
            assert!((t.goodput_bps / s.goodput_bps - 1.0).abs() < 0.02, "{t:?} {s:?}");
        }
    }
}

#[test]
fn headers_count_on_the_wire_and_not_as_goodput() {
    let linux = ["tcp.flavour=linux", "path.packet=1500B", "transfer.0.sizing=fixed:200pkt"];
    let (theory, sim, off) = off(PATH, &linux);
    assert!(off.abs() < 0.02, "{theory} {sim}");
}

#[test]
fn scenarios_without_a_formula_are_rejected_with_the_reason() {
    let mice = format!("{PATH}{MICE}");
    assert!(refused(&mice, &[]).contains("limited size"), "{}", refused(&mice, &[]));
    let elephants = format!("{PATH}{ELEPHANTS}");
    for (text, change, why) in [
        (PATH, "transfer.0.sizing=sobas", "finds its window by measuring"),
        (PATH, "transfer.0.sizing=heffner", "finds its window by measuring"),
        (PATH, "transfer.0.size=10MB", "has a size"),
        (PATH, "transfer.0.start=300s", "starts after"),
        (PATH, "path.queue=codel", "drop-tail"),
        (&elephants, "transfer.0.sizing=max", "overflows the buffer"),
        (&elephants, "cross.0.count=40", "congests the path"),
        (&elephants, "path.loss=0.01", "at random"),
    ] {
        let message = refused(text, &[change]);
        assert!(message.contains(why), "{change}: {message}");
        assert!(message.contains("not covered by a closed form, because"), "{message}");
    }
    let cubic = ["transfer.0.sizing=max", "transfer.0.congestion=cubic"];
    assert!(refused(PATH, &cubic).contains("for Reno"));
    // Without losses the congestion control's response to loss does not matter.
    off(PATH, &["transfer.0.congestion=cubic"]);
}

#[test]
fn every_number_in_an_outcome_is_finite() {
    let (theory, _) = both(PATH, &[]);
    let json = format!("{theory:?}");
    assert!(!json.contains("NaN") && !json.contains("inf"), "{json}");
    let derivation = theory.derivation.expect("a formula was used");
    assert!(derivation.formulas.iter().any(|f| f.source.contains("(4) and (5)")));
    assert!(!derivation.assumptions.is_empty());
}

#[test]
fn mirrored_elephants_are_slowed_in_both_directions() {
    // The ACKs of the reverse flows wait in the same queue as the forward packets.
    let (theory, sim) = both(&format!("{PATH}{ELEPHANTS}"), &[]);
    let reverse = |outcome: &Outcome| outcome.cross[0].reverse_goodput_bps.unwrap_or_default();
    let off = reverse(&theory) / reverse(&sim) - 1.0;
    assert!(off.abs() < 0.02, "theory is off by {off:.3}");
}
