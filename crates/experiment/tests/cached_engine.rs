//! Finished runs are not repeated, and the stored runs of a killed program are reused.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sweetspot_experiment::{
    CachedEngine, Journal, JournalError, Over, ResultStore, RunKey, Sweep, Workers,
};
use sweetspot_scenario::{Engine, EngineError, NoRecorder, Outcome, Recorder, Scenario};
use sweetspot_sim::Simulator;

const SCENARIO: &str = r#"
    duration = "2s"
    [path]
    rate = "10Mbit/s"
    rtt = "20ms"
    buffer = "20pkt"
    [[transfer]]
    sizing = "max"
"#;

/// An engine that counts its runs.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Engine for Counting {
    fn name(&self) -> &'static str {
        "sim"
    }
    fn run(&self, scenario: &Scenario, to: &mut dyn Recorder) -> Result<Outcome, EngineError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Simulator.run(scenario, to)
    }
}

/// The text of a journal.
struct Pages(Mutex<(String, BTreeMap<RunKey, Outcome>)>);

impl Pages {
    fn begin() -> Pages {
        Pages(Mutex::new((Journal::head("1"), BTreeMap::new())))
    }

    /// The state that another program would read from `text`.
    fn found(text: &str) -> Pages {
        let journal = Journal::parse(text, "1").expect("it is a journal");
        Pages(Mutex::new((text[..journal.whole].to_owned(), journal.runs)))
    }

    fn text(&self) -> String {
        self.0.lock().expect("nobody panicked").0.clone()
    }
}

impl ResultStore for Pages {
    fn get(&self, key: &RunKey) -> Option<Outcome> {
        self.0.lock().expect("nobody panicked").1.get(key).cloned()
    }
    fn put(&self, key: &RunKey, outcome: &Outcome) {
        let mut kept = self.0.lock().expect("nobody panicked");
        kept.0 += &Journal::entry(key, outcome);
        kept.1.insert(key.clone(), outcome.clone());
    }
}

fn sweep() -> Sweep {
    Sweep {
        text: SCENARIO.to_owned(),
        overrides: Vec::new(),
        over: vec![Over::parse("path.buffer=5pkt,10pkt,20pkt").expect("it is well formed")],
        seeds: 4,
    }
}

fn run(store: &Pages) -> (String, usize) {
    let sweep = sweep();
    let variants = sweep.variants().expect("every value is valid");
    let counting = Counting::default();
    let engine = CachedEngine { engine: &counting, store };
    let points = sweep.run(&variants, &engine, Workers::new(2)).expect("it runs");
    (format!("{points:?}"), counting.0.load(Ordering::Relaxed))
}

#[test]
fn a_sweep_killed_at_any_point_resumes_to_identical_results() {
    let pages = Pages::begin();
    let (whole, finished) = run(&pages);
    assert_eq!(finished, 12);
    let text = pages.text();
    // Cut within the first line, within other lines, and right after a line.
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    for cut in [0, 10, ends[0], ends[3] - 1, ends[3], ends[7] + 25, text.len()] {
        let survived = ends.iter().filter(|end| **end <= cut).count().saturating_sub(1);
        let pages = Pages::found(&text[..cut]);
        let (again, finished) = run(&pages);
        assert_eq!(again, whole, "cut at {cut}");
        assert_eq!(finished, 12 - survived, "cut at {cut}");
    }
}

#[test]
fn an_outcome_round_trips_through_the_journal_exactly() {
    let scenario = Scenario::parse(SCENARIO).expect("it is a scenario");
    let outcome = Simulator.run(&scenario, &mut NoRecorder).expect("it runs");
    let key = RunKey::of("sim", &scenario);
    let text = Journal::head("1") + &Journal::entry(&key, &outcome);
    let journal = Journal::parse(&text, "1").expect("it is a journal");
    assert_eq!(journal.runs.get(&key), Some(&outcome));
}

#[test]
fn a_new_title_reuses_the_run_and_appears_in_the_outcome() {
    let pages = Pages::begin();
    let counting = Counting::default();
    let engine = CachedEngine { engine: &counting, store: &pages };
    for title in ["one", "another"] {
        let scenario = Scenario {
            title: title.to_owned(),
            ..Scenario::parse(SCENARIO).expect("it is a scenario")
        };
        let outcome = engine.run(&scenario, &mut NoRecorder).expect("it runs");
        assert_eq!(outcome.scenario, title);
    }
    assert_eq!(counting.0.load(Ordering::Relaxed), 1);
}

#[test]
fn journal_errors_distinguish_other_versions_foreign_files_and_damage() {
    let of = |text: &str| Journal::parse(text, "2").expect_err("it is none of ours");
    assert!(matches!(of(&Journal::head("1")), JournalError::OtherVersion { .. }));
    assert_eq!(of("a,b,c\n1,2,3\n"), JournalError::Alien);
    assert_eq!(of("never anything of ours"), JournalError::Alien);
    let damaged = Journal::head("2") + "{\"engine\":\n";
    assert!(matches!(of(&damaged), JournalError::Damaged { line: 2, .. }));
}
