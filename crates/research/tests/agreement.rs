//! The simulator reproduces ns-2's results on the same scenarios: a selection of the cases in
//! docs/results/ns2.md.

use sweetspot_experiment::Workers;
use sweetspot_research::ns2::{
    MAX_DEVIATION, MAX_MAXIMUM_DEVIATION, MAX_MEDIAN_DEVIATION, Ns2Case, Ns2Comparison, Ns2Setting,
    cases, compare, maxima, spread,
};
use sweetspot_scenario::{Engine, NoRecorder, Scenario};
use sweetspot_sim::Simulator;

/// Runs the cases for which `belongs` is true, at some windows.
fn finished(belongs: impl Fn(&Ns2Setting) -> bool, windows: &[u64]) -> Vec<Ns2Comparison> {
    let picked: Vec<Ns2Case> = cases()
        .expect("the reference table is part of the program")
        .into_iter()
        .filter(|case| belongs(&case.setting) && windows.contains(&case.window))
        .collect();
    compare(&Simulator, &picked, Workers::new(2)).expect("the simulator runs every case")
}

fn assert_agreement(comparisons: &[Ns2Comparison], at_least: usize) {
    let spread = spread(comparisons, |_| true).expect("there are cases");
    assert!(spread.count >= at_least, "{} cases left of {at_least}", spread.count);
    for comparison in comparisons.iter().filter(|c| c.deviation().abs() > MAX_DEVIATION) {
        let Ns2Setting { cross, congestion, buffer, .. } = &comparison.setting;
        eprintln!(
            "{cross} {congestion} B={buffer} S={}: ns-2 {:.2}, here {:.2} Mbit/s",
            comparison.window, comparison.theirs.goodput_mbps, comparison.ours.goodput_mbps
        );
    }
    assert!(spread.median <= MAX_MEDIAN_DEVIATION, "median {:.3}", spread.median);
    assert!(spread.worst <= MAX_DEVIATION, "worst {:.3}", spread.worst);
}

#[test]
fn goodput_without_cross_traffic_matches_ns2_around_the_sweet_spot() {
    // 726 and 939 are just above C T_m + B_t for B_t of 100 and 313, where goodput drops.
    let alone = |s: &Ns2Setting| s.cross == "none" && s.buffer <= 313 && s.congestion != "sack";
    assert_agreement(&finished(alone, &[640, 726, 939, 4000]), 12);
}

#[test]
fn goodput_with_elephants_matches_ns2_below_and_beyond_the_peak() {
    let elephants = |s: &Ns2Setting| {
        s.cross == "elephants"
            && s.flavour == "2.35"
            && s.queue == "packets"
            && s.reverse == "mirror"
    };
    assert_agreement(&finished(elephants, &[250, 4000]), 18);
}

#[test]
fn byte_queues_clean_reverse_paths_and_delayed_acks_match_ns2() {
    let variants = |s: &Ns2Setting| {
        s.cross == "elephants"
            && (s.flavour == "2002" || s.queue == "bytes" || s.reverse == "clean")
    };
    assert_agreement(&finished(variants, &[360, 590, 600, 1100, 1200]), 10);
}

#[test]
fn goodput_with_pareto_traffic_matches_ns2() {
    let pareto =
        |s: &Ns2Setting| s.cross == "pareto" && s.flavour == "2.35" && s.congestion == "reno";
    assert_agreement(&finished(pareto, &[150, 250, 1875]), 9);
}

#[test]
fn the_goodput_maximum_with_elephants_matches_ns2() {
    let peaks = [310, 320, 330, 510, 540, 560, 950, 1000, 1040];
    let elephants = |s: &Ns2Setting| {
        s.cross == "elephants"
            && (s.flavour, s.congestion, s.queue, s.reverse)
                == ("2.35", "reno", "packets", "mirror")
    };
    let maxima = maxima(&finished(elephants, &peaks));
    assert_eq!(maxima.len(), 3);
    for maximum in maxima {
        let (rate, window) = (maximum.ours.0 / maximum.theirs.0, maximum.ours.1 as f64);
        assert!((rate - 1.0).abs() <= MAX_MAXIMUM_DEVIATION, "{maximum:?}");
        assert!(
            (window / maximum.theirs.1 as f64 - 1.0).abs() <= MAX_MAXIMUM_DEVIATION,
            "{maximum:?}"
        );
    }
}

#[test]
fn a_dynamic_flow_collapses_in_a_short_queue_as_in_ns2() {
    // Figure 3 of the Dynamic Right-Sizing paper, Q = 100: from maxwnd = 560 on, 44 + maxwnd packets overflow
    // the path's 503 and the queue's 100. The flow's packets arrive at the router's own rate, at the instants
    // at which others leave. Thousands of packets in data/drs_ns2.csv, static and dynamic.
    let ns2 = [(550, 123.264, 1538.580), (650, 142.287, 1111.211), (700, 142.287, 1081.926)];
    for (maxwnd, fixed, dynamic) in ns2 {
        let text = include_str!("../../../scenarios/papers/drs-fig3.toml");
        let window = format!("transfer.1.sizing=fixed:{maxwnd}pkt");
        let scenario = Scenario::parse_with(text, &[window]).expect("the scenario is valid");
        let outcome = Simulator.run(&scenario, &mut NoRecorder).expect("the simulator runs it");
        for (flow, theirs) in outcome.transfers.iter().zip([fixed, dynamic]) {
            // 200 s, with packets of 12,000 bits.
            let ours = flow.goodput_bps * 200.0 / 12e6;
            assert!(
                (ours / theirs - 1.0).abs() < MAX_MEDIAN_DEVIATION,
                "{maxwnd}: {ours} to {theirs}"
            );
        }
    }
}
