//! Races between the best windows of a search, and fresh seeds to measure the winners.

use sweetspot_scenario::{Engine, Scenario};

use super::{Mft, Race};
use crate::run::{goodput, run_all, with_window};
use crate::{StudyError, Workers};

/// Number of windows in a race.
pub const CANDIDATES: usize = 8;
/// Maximum number of seeds in a race, including the search's.
pub const RACE_SEEDS: usize = 16;

/// For each scenario, runs a race between the best windows of its search, which began with the scenario's own
/// seed.
pub fn choose<E: Engine + Sync + ?Sized>(
    engine: &E,
    found: &[(&Scenario, &Mft)],
    workers: Workers,
) -> Result<Vec<Race>, StudyError> {
    let race = |(_, mft): &(&Scenario, &Mft)| Race::new(mft.entrants(CANDIDATES), RACE_SEEDS);
    let mut races: Vec<Race> = found.iter().map(race).collect();
    loop {
        let requested = |(job, race): (usize, &mut Race)| {
            race.poll_runs().into_iter().map(move |(window, seed)| (job, window, seed as u64))
        };
        let requested: Vec<(usize, u64, u64)> =
            races.iter_mut().enumerate().flat_map(requested).collect();
        if requested.is_empty() {
            return Ok(races);
        }
        let run = |(job, window, seed): &(usize, u64, u64)| {
            let sized = with_window(found[*job].0, *window);
            Scenario { seed: sized.seed + seed, ..sized }
        };
        let runs: Vec<Scenario> = requested.iter().map(run).collect();
        let outcomes = run_all(engine, &runs, workers)?;
        for ((job, window, _), outcome) in requested.iter().zip(&outcomes) {
            races[*job].handle_rate(*window, goodput(outcome));
        }
    }
}

/// `scenario` with the first seed that neither its search nor its race has used.
pub fn fresh(scenario: &Scenario) -> Scenario {
    Scenario { seed: scenario.seed + RACE_SEEDS as u64, ..scenario.clone() }
}
