//! The standing set by theory and by the simulator. The kernel's part is measured by
//! `make bench-lab`, for it takes real time.

use sweetspot_scenario::{Engine, NoRecorder};
use sweetspot_sim::Simulator;
use sweetspot_study::validate::{Comparison, STANDING};

#[test]
fn the_simulator_keeps_within_the_bounds_of_the_closed_forms() {
    let mut broken = 0;
    for standing in STANDING {
        let scenario = standing.scenario().unwrap();
        let outcome = Simulator.run(&scenario, &mut NoRecorder).unwrap();
        let outcomes = [outcome];
        let verdicts = standing.verdicts(&outcomes);
        assert_eq!(verdicts.len(), usize::from(standing.theory().is_some()), "{}", standing.name);
        for verdict in verdicts {
            println!("{}: {} ({:+.2} %)", standing.name, verdict.words, 100.0 * verdict.off);
            broken += usize::from(!verdict.kept());
        }
        // One engine is no comparison, and says so.
        assert!(Comparison::of(&scenario, &outcomes).text().starts_with("One engine alone"));
    }
    assert_eq!(broken, 0, "see the lines above");
}
