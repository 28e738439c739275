//! Races between the windows that searches found best, and the seeds on which winners are measured.

use sweetspot_scenario::{Engine, Scenario};

use super::{Mft, Race};
use crate::run::{goodput, run_all, with_window};
use crate::{StudyError, Workers};

/// Windows that race.
pub const CANDIDATES: usize = 8;
/// The max number of seeds that decide a race, including the search's.
pub const RACE_SEEDS: usize = 16;

/// For each scenario the race between the best windows of its search, which began at the scenario's own seed.
pub fn choose<E: Engine + Sync + ?Sized>(
    engine: &E,
    found: &[(&Scenario, &Mft)],
    workers: Workers,
) -> Result<Vec<Race>, StudyError> {
    let race = |(_, mft): &(&Scenario, &Mft)| Race::new(mft.entrants(CANDIDATES), RACE_SEEDS);
    let mut races: Vec<Race> = found.iter().map(race).collect();
    loop {
        let wanted = |(job, race): (usize, &mut Race)| {
            race.poll_runs().into_iter().map(move |(window, seed)| (job, window, seed as u64))
        };
        let wanted: Vec<(usize, u64, u64)> =
            races.iter_mut().enumerate().flat_map(wanted).collect();
        if wanted.is_empty() {
            return Ok(races);
        }
        let run = |(job, window, seed): &(usize, u64, u64)| {
            let sized = with_window(found[*job].0, *window);
            Scenario { seed: sized.seed + seed, ..sized }
        };
        let runs: Vec<Scenario> = wanted.iter().map(run).collect();
        let outcomes = run_all(engine, &runs, workers)?;
        for ((job, window, _), outcome) in wanted.iter().zip(&outcomes) {
            races[*job].handle_rate(*window, goodput(outcome));
        }
    }
}

/// `scenario` from the first seed on that neither its search nor its race has seen.
pub fn fresh(scenario: &Scenario) -> Scenario {
    Scenario { seed: scenario.seed + RACE_SEEDS as u64, ..scenario.clone() }
}
