//! Populations of random paths, and the reports on runs over them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use sweetspot_experiment::{NoStore, ResultStore, RunKey, Workers};
use sweetspot_path::QueueDiscipline;
use sweetspot_research::gauntlet::{
    DrawnPath, GauntletPlan, GauntletReport, GauntletSettings, GauntletVariant, PathClass,
    Population, Runner, table,
};
use sweetspot_scenario::{Congestion, Outcome, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_sizing::Sizing;
use sweetspot_units::{Duration, Probability};

fn drawn(population: Population, seed: u64, index: u64) -> Scenario {
    let path = DrawnPath::new(population, seed, index, None);
    let text = path.text(Sizing::Sobas, Congestion::Cubic, 0);
    Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

#[test]
fn every_drawn_path_is_within_the_ranges() {
    for population in Population::ALL {
        for index in 0..300 {
            let scenario = drawn(population, 3, index);
            let path = &scenario.path;
            let (hop, rtt) = (path.narrow(), path.rtt);
            assert!((2e6..=600e6).contains(&hop.rate.as_f64()), "{hop:?}");
            assert!((0.005..=0.3).contains(&rtt.as_secs_f64()), "{rtt}");
            let packets = hop.buffer.in_packets(path.packet) as f64;
            let bdp = hop.rate.as_f64() * rtt.as_secs_f64() / 8.0 / path.packet.as_f64();
            assert!(packets >= 5.0 && packets <= (4.0 * bdp + 1.0).max(5.0), "{packets} of {bdp}");
            assert!(packets >= 0.08 * bdp - 1.0, "{packets} of {bdp}");
            assert!(hop.loss <= Probability::new(0.01).expect("a probability"), "{}", hop.loss);
            assert!(hop.jitter <= Duration::from_millis(20) && hop.jitter * 4 <= rtt, "{hop:?}");
        }
    }
}

#[test]
fn drawn_paths_have_the_intended_shares() {
    let paths: Vec<Scenario> = (0..2000).map(|i| drawn(Population::Drawn, 5, i)).collect();
    // The standard error of a fraction of one half over 2000 paths is 1.1 %.
    let share = |holds: &dyn Fn(&Scenario) -> bool| {
        paths.iter().filter(|path| holds(path)).count() as f64 / paths.len() as f64
    };
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 0.04, "{found}");
    near(share(&|path| path.path.hops[0].loss > Probability::ZERO), 0.4);
    near(share(&|path| path.path.hops[0].jitter > Duration::ZERO), 0.4);
    near(share(&|path| path.path.hops[0].queue == QueueDiscipline::DropTail), 0.7);
    near(share(&|path| path.cross.is_empty()), 0.5);
}

#[test]
fn a_seed_always_draws_the_same_paths() {
    let path = DrawnPath::new(Population::Drawn, 7, 5, None);
    let text = path.text(Sizing::Kernel, Congestion::Cubic, 0);
    // Recorded once; a different text would mean a different population.
    for line in ["seed = 1147956746494373", "rate = \"6.263Mbit/s\"", "rtt = \"138.669ms\""] {
        assert!(text.contains(line), "{text}");
    }
    let other = DrawnPath::new(Population::Drawn, 8, 5, None);
    assert_ne!(text, other.text(Sizing::Kernel, Congestion::Cubic, 0));
}

#[test]
fn populations_with_the_same_seed_have_the_same_bottlenecks() {
    for population in Population::ALL {
        assert_eq!(drawn(population, 2, 9).path.hops, drawn(Population::Drawn, 2, 9).path.hops);
    }
}

#[test]
fn the_changes_population_has_path_changes_and_late_cross_traffic() {
    let paths: Vec<Scenario> = (0..100).map(|i| drawn(Population::Changes, 1, i)).collect();
    assert!(paths.iter().any(|path| path.path.changes.iter().any(|c| c.rate.is_some())));
    assert!(paths.iter().any(|path| path.path.changes.iter().any(|c| c.delay.is_some())));
    let joins = |path: &Scenario| path.cross.iter().any(|cross| cross.start.0 > path.warmup);
    assert!(paths.iter().any(joins));
    for path in &paths {
        let still = path.path.changes.is_empty() && path.cross.is_empty();
        assert!(!still, "{}", path.title);
    }
}

fn settings(paths: u64) -> GauntletSettings {
    GauntletSettings {
        population: Population::Drawn,
        seed: 7,
        paths: 0..paths,
        seeds: 2,
        duration: Some(Duration::from_secs(2)),
        congestion_fixed: false,
        congestions: vec![Congestion::Cubic],
        sizings: vec![Sizing::Sobas],
    }
}

fn plan(paths: u64) -> GauntletPlan {
    GauntletPlan::new(settings(paths)).expect("it can be drawn")
}

#[test]
fn every_run_matches_its_scenario_file() {
    for congestion_fixed in [false, true] {
        let settings = GauntletSettings { congestion_fixed, ..settings(3) };
        let plan = GauntletPlan::new(settings).expect("it can be drawn");
        for run in plan.runs() {
            let scenario = run.scenario();
            assert_eq!(Scenario::parse(&run.text()).expect("it is a scenario"), scenario);
            let tested = matches!(run.variant(), GauntletVariant::Compared(..));
            let fixed = scenario.transfers.iter().all(|transfer| transfer.congestion_fixed);
            assert_eq!(fixed, congestion_fixed && tested);
        }
    }
}

#[derive(Default)]
struct Kept(Mutex<BTreeMap<RunKey, Outcome>>);

impl ResultStore for Kept {
    fn get(&self, key: &RunKey) -> Option<Outcome> {
        self.0.lock().expect("nobody panicked").get(key).cloned()
    }
    fn put(&self, key: &RunKey, outcome: &Outcome) {
        self.0.lock().expect("nobody panicked").insert(key.clone(), outcome.clone());
    }
}

#[test]
fn a_resumed_benchmark_gives_the_same_results() {
    let (plan, store) = (plan(4), Kept::default());
    let runner = Runner { engine: &Simulator, store: &store, tag: "a" };
    let at_once = Runner { engine: &Simulator, store: &NoStore, tag: "a" };
    assert_eq!(runner.missing(&plan), plan.runs().count());
    let first = runner.run(&plan, Workers::new(2)).expect("it can be run");
    assert_eq!(runner.missing(&plan), 0);
    // As if a killed program had lost every third run.
    let mut number = 0;
    store.0.lock().expect("nobody panicked").retain(|_, _| {
        number += 1;
        number % 3 != 0
    });
    let resumed = runner.run(&plan, Workers::ONE).expect("it can be run");
    assert_eq!(first, resumed);
    assert_eq!(first, at_once.run(&plan, Workers::ONE).expect("it can be run"));
}

#[test]
fn a_new_tag_reruns_the_sizing_but_not_the_kernel() {
    let (plan, store) = (plan(2), Kept::default());
    Runner { engine: &Simulator, store: &store, tag: "a" }
        .run(&plan, Workers::ONE)
        .expect("it can be run");
    // Two paths with two seeds each.
    assert_eq!(Runner { engine: &Simulator, store: &store, tag: "b" }.missing(&plan), 4);
}

#[test]
fn the_null_ratio_of_a_deterministic_path_is_one() {
    let plan = plan(20);
    let runner = Runner { engine: &Simulator, store: &NoStore, tag: "" };
    let measured = runner.run(&plan, Workers::new(2)).expect("it can be run");
    let report = GauntletReport::of(&plan, &measured);
    let null = &report.variants[0];
    assert_eq!(null.sizing, "null");
    let alone =
        null.paths.iter().filter(|path| path.classes.contains(&PathClass::CleanAloneDropTail));
    assert!(alone.clone().count() > 0);
    for path in alone {
        assert!((path.goodput - 1.0).abs() < 1e-3, "{path:?}");
    }
    assert!(table(&report).lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn a_table_leads_with_the_verdict_and_explains_its_headings() {
    let plan = plan(4);
    let runner = Runner { engine: &Simulator, store: &NoStore, tag: "" };
    let report =
        GauntletReport::of(&plan, &runner.run(&plan, Workers::new(2)).expect("it can be run"));
    let text = table(&report);
    let (before, tables) = text.split_once("\nnull, ").expect("the null's table");
    let result = &report.variants[1];
    let all = &result.classes[0];
    let verdict = format!(
        "{}, {}: goodput {:.1} % and delay {:.1} % of the kernel's (medians).",
        result.sizing,
        result.congestion,
        all.goodput.p50.expect("paths") * 100.0,
        all.delay_median.expect("queues") * 100.0
    );
    let (verdicts, reading) = before.split_once("How to read").expect("the explanation");
    assert!(verdicts.contains(&verdict), "{text}");
    let worse = all.surely_worse.expect("several seeds") * 100.0;
    assert!(
        verdicts.contains(&format!("slower than the kernel on {worse:.1} % of paths")),
        "{text}"
    );
    for class in result.classes.iter().map(|summary| summary.class.name()) {
        assert!(reading.contains(&format!("\n  {class} ")), "{class}: {text}");
    }
    let is_heading = |line: &&str| line.starts_with(' ');
    let headings = tables.lines().filter(is_heading).flat_map(str::split_whitespace);
    for heading in headings.filter(|heading| heading.parse::<f64>().is_err() && *heading != "%") {
        assert!(reading.contains(heading), "{heading}: {text}");
    }
}
