//! Invariants of every study.

use sweetspot_experiment::{Over, SearchBounds, Sweep, Workers, find_mft};
use sweetspot_scenario::{Engine, NoRecorder, Scenario};
use sweetspot_sim::Simulator;

/// C T_m = 125 packets, B_t = 60, and elephants in both directions on half of the path.
const SMALL: &str = r#"
    warmup = "5s"
    duration = "10s"
    [path]
    rate = "20Mbit/s"
    rtt = "50ms"
    buffer = "60pkt"
    [[cross]]
    kind = "elephants"
    count = 5
    window = "12pkt"
    rtt = ["40ms", "60ms"]
    [[transfer]]
    start = "3s"
    sizing = "fixed:100pkt"
"#;

fn small() -> Scenario {
    Scenario::parse(SMALL).expect("the test's scenario is valid")
}

fn over(text: &str) -> Over {
    Over::parse(text).expect("it is well formed")
}

fn bounds(scenario: &Scenario) -> SearchBounds {
    SearchBounds { tolerance: 0.02, ..SearchBounds::around(scenario) }
}

#[test]
fn the_search_result_does_not_depend_on_the_number_of_workers() {
    let scenario = small();
    let search = |workers| {
        find_mft(&Simulator, &scenario, bounds(&scenario), 2, Workers::new(workers))
            .expect("the simulator runs every window")
    };
    let alone = search(1);
    assert_eq!(search(2), alone);
    assert_eq!(search(7), alone);
}

#[test]
fn sweep_results_do_not_depend_on_the_number_of_workers() {
    let sweep = Sweep {
        text: SMALL.to_owned(),
        overrides: vec!["duration=5s".to_owned()],
        over: vec![over("path.buffer=30pkt,60pkt,90pkt,60kB,120kB")],
        seeds: 2,
    };
    let variants = sweep.variants().expect("every value is valid");
    let run = |workers| sweep.run(&variants, &Simulator, Workers::new(workers)).expect("it runs");
    let alone = format!("{:?}", run(1));
    for workers in [2, 3, 8] {
        assert_eq!(format!("{:?}", run(workers)), alone, "{workers} workers");
    }
}

#[test]
fn a_sweep_point_equals_a_standalone_run() {
    let sweep = Sweep {
        text: SMALL.to_owned(),
        overrides: Vec::new(),
        over: vec![over("transfer.sizing=max,fixed:80pkt")],
        seeds: 1,
    };
    let variants = sweep.variants().expect("every value is valid");
    let points = sweep.run(&variants, &Simulator, Workers::new(2)).expect("it runs");
    let scenario = Scenario::parse_with(SMALL, &["transfer.0.sizing=fixed:80pkt".to_owned()])
        .expect("the value is valid");
    let alone = Simulator.run(&scenario, &mut NoRecorder).expect("the simulator runs it");
    assert_eq!(points[1].outcomes, [alone]);
}

#[test]
fn the_optimum_matches_the_best_trial_and_stays_below_capacity() {
    let scenario = small();
    let found = find_mft(&Simulator, &scenario, bounds(&scenario), 1, Workers::new(2))
        .expect("the simulator runs every window");
    assert!(found.trials.iter().all(|trial| trial.rate_bps <= found.rate_bps));
    assert!(found.rate_bps <= 20e6);
    // Without cross traffic's share: the elephants keep 5 x 12 packets in flight.
    assert!(found.rate_bps > 10e6, "{found:?}");
}

#[test]
fn doubling_rates_and_halving_times_keeps_the_best_window() {
    // With every rate doubled and every time halved, C T_m, B_t and all windows stay. The last
    // packets of two runs may differ by a nanosecond's rounding, so a neighbour of the best window
    // may win.
    let scaled = r#"
        warmup = "2500ms"
        duration = "5s"
        [path]
        rate = "40Mbit/s"
        rtt = "25ms"
        buffer = "60pkt"
        access_rate = "2Gbit/s"
        [tcp]
        min_rto = "100ms"
        initial_rto = "1500ms"
        clock = "5ms"
        ack_delay = "50ms"
        [[cross]]
        kind = "elephants"
        count = 5
        window = "12pkt"
        rtt = ["20ms", "30ms"]
        start = ["0s", "1500ms"]
        [[transfer]]
        start = "1500ms"
        sizing = "fixed:100pkt"
    "#;
    let scaled = Scenario::parse(scaled).expect("the test's scenario is valid");
    let find = |scenario: &Scenario| {
        find_mft(&Simulator, scenario, bounds(scenario), 1, Workers::new(2))
            .expect("the simulator runs every window")
    };
    let (one, two) = (find(&small()), find(&scaled));
    assert!((two.rate_bps / one.rate_bps / 2.0 - 1.0).abs() < 0.02, "{one:?} {two:?}");
    assert!((two.window as f64 / one.window as f64 - 1.0).abs() < 0.05, "{one:?} {two:?}");
}

#[test]
fn variants_cover_every_combination_and_share_the_same_seeds() {
    let sweep = Sweep {
        text: SMALL.to_owned(),
        overrides: vec!["duration=2s".to_owned(), "seed=7".to_owned()],
        over: vec![over("path.buffer=30pkt,60pkt"), over("transfer.sizing=max,drs,sobas")],
        seeds: 3,
    };
    let variants = sweep.variants().expect("every value is valid");
    assert_eq!(variants.len(), 6);
    assert_eq!(variants[4].values, ["60pkt", "drs"]);
    let points = sweep.run(&variants, &Simulator, Workers::new(2)).expect("it runs");
    for point in points {
        let seeds: Vec<u64> = point.outcomes.iter().map(|outcome| outcome.seed).collect();
        assert_eq!(seeds, [7, 8, 9]);
    }
}

#[test]
fn invalid_sweeps_are_rejected_before_any_run() {
    let sweep = |overrides: &[&str], overs: &[&str]| Sweep {
        text: SMALL.to_owned(),
        overrides: overrides.iter().map(|text| (*text).to_owned()).collect(),
        over: overs.iter().map(|text| over(text)).collect(),
        seeds: 1,
    };
    let error = |sweep: Sweep| sweep.variants().expect_err("it contradicts itself").to_string();
    let twice = error(sweep(&[], &["path.buffer=30pkt", "path.buffer=60pkt"]));
    assert!(twice.contains("path.buffer is swept twice"), "{twice}");
    let set = error(sweep(&["path.buffer=30pkt"], &["path.buffer=60pkt"]));
    assert!(set.contains("path.buffer is given to both --over and --set"), "{set}");
    let slip = error(sweep(&[], &["path.bufer=30pkt,60pkt"]));
    assert!(slip.contains("did you mean path.buffer?"), "{slip}");
}
