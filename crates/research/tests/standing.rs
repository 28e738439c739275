//! The standing set in theory and in the simulator. The kernel's part takes real time and is
//! measured by `make bench-lab`.

use sweetspot_research::validate::{EngineComparison, STANDING};
use sweetspot_scenario::{Engine, EngineError, NoRecorder};
use sweetspot_sim::Simulator;
use sweetspot_theory::engine::Theory;

#[test]
fn the_simulator_stays_within_its_bounds_of_the_closed_forms() {
    let mut broken = 0;
    for standing in STANDING {
        let scenario = standing.scenario().unwrap();
        let theory = match Theory.run(&scenario, &mut NoRecorder) {
            Err(EngineError::NotCovered { because }) => {
                println!("{}: {because}", standing.name);
                None
            }
            other => Some(other.unwrap()),
        };
        // A scenario has this bound if and only if theory covers it.
        assert_eq!(theory.is_some(), standing.bounds.sim_off_theory.is_some(), "{}", standing.name);
        let sim = Simulator.run(&scenario, &mut NoRecorder).unwrap();
        let outcomes: Vec<_> = theory.into_iter().chain([sim]).collect();
        for check in standing.bound_checks(&outcomes) {
            println!("{}: {} ({:+.2} %)", standing.name, check.words, 100.0 * check.off);
            broken += usize::from(!check.kept());
        }
        if let [only] = &outcomes[..] {
            let text = EngineComparison::of(&scenario, std::slice::from_ref(only)).text();
            // A single engine cannot be compared, and the text says so.
            assert!(text.starts_with("One engine alone"), "{text}");
        }
    }
    assert_eq!(broken, 0, "see the lines above");
}
