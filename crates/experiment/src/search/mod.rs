//! The search for the Maximum Feasible Throughput (section II of the SOBAS paper): the window S that maximises R(S).
//!
//! R(S) rises while the window is the limit, and falls steeply where the transfer begins to overflow the bottleneck.
//! Just beyond it dips, then rises again to the rate of congestion control alone (docs/results/ns2.md). It therefore
//! has a peak on either side of the cliff, and a search for a single peak can end on the wrong side. This search first
//! climbs a geometric ladder, then refines every interval that can still contain the best window: by golden section
//! around a rung above its neighbours, and by bisection between a rung without loss and one with loss. At the end it
//! searches around the winner.
//!
//! Guarantees:
//!
//! - The result is the best of all windows tried, including rungs and both ends.
//! - If R has one peak between neighbouring rungs, the window is within the tolerance of it.
//! - All windows meet the same cross traffic (common random numbers), so only the window differs.
//! - The result depends only on the scenario, the seeds and the bounds, not on the number of workers.
//!
//! If the noise of R exceeds the change of R between windows a tolerance apart, the maximum over many trials is biased
//! upwards. More seeds lower the bias, a [`Race`] among the best windows improves the choice, and fresh seeds measure
//! the winner without bias.

mod bracket;
mod contest;
mod lower_edge;
mod plan;
mod race;
mod trial;

pub use contest::{CANDIDATES, RACE_SEEDS, choose, fresh};
pub use lower_edge::narrow_lower_edge;
pub use plan::{Search, SearchBounds};
pub use race::{Entrant, Race};
pub use trial::WindowTrial;

use std::collections::BTreeMap;

use sweetspot_scenario::{Engine, Outcome, Scenario};

use crate::run::{goodput, run_all, with_window};
use crate::{StudyError, Workers};

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Mft {
    /// The window, packets.
    pub window: u64,
    /// The Maximum Feasible Throughput, bit/s, mean over the seeds.
    pub rate_bps: f64,
    /// All windows tried, in ascending order.
    pub trials: Vec<WindowTrial>,
    /// The goodput of each trial by seed, bit/s.
    pub rates: Vec<Vec<f64>>,
    /// The mean RTT of each trial over the seeds, seconds.
    pub rtts: Vec<f64>,
}

impl Mft {
    /// The best `count` windows tried, as entrants of a race over more seeds. Of equal windows, the smaller comes
    /// first.
    pub fn entrants(&self, count: usize) -> Vec<Entrant> {
        let mut places: Vec<usize> = (0..self.trials.len()).collect();
        places.sort_by(|a, b| self.trials[*b].rate_bps.total_cmp(&self.trials[*a].rate_bps));
        let entrant = |place: &usize| Entrant {
            window: self.trials[*place].window,
            rates: self.rates[*place].clone(),
        };
        places.iter().take(count).map(entrant).collect()
    }
}

/// The Maximum Feasible Throughput of the first transfer of `scenario`, over `seeds` seeds beginning with the
/// scenario's own.
pub fn find_mft<E: Engine + Sync + ?Sized>(
    engine: &E,
    scenario: &Scenario,
    bounds: SearchBounds,
    seeds: u64,
    workers: Workers,
) -> Result<Mft, StudyError> {
    let mut found = find_mfts(engine, &[(scenario.clone(), bounds)], seeds, workers)?;
    Ok(found.remove(0))
}

/// [`find_mft`] for several scenarios at once. Each step has only a few runs, and this keeps all workers busy.
pub fn find_mfts<E: Engine + Sync + ?Sized>(
    engine: &E,
    jobs: &[(Scenario, SearchBounds)],
    seeds: u64,
    workers: Workers,
) -> Result<Vec<Mft>, StudyError> {
    if jobs.iter().any(|(scenario, _)| scenario.transfers.is_empty()) {
        return Err(StudyError::NoTransfer);
    }
    let seeds = seeds.max(1);
    let mut searches: Vec<Search> = jobs.iter().map(|(_, bounds)| Search::new(*bounds)).collect();
    let mut runs_by_window: Vec<RunsByWindow> = vec![BTreeMap::new(); jobs.len()];
    loop {
        let mut requested: Vec<(usize, u64)> = Vec::new();
        for (i, search) in searches.iter_mut().enumerate() {
            requested.extend(search.poll_windows().unwrap_or_default().iter().map(|w| (i, *w)));
        }
        if requested.is_empty() {
            break;
        }
        let seeded = |(job, window): &(usize, u64)| seeded(&jobs[*job].0, *window, seeds);
        let runs: Vec<Scenario> = requested.iter().flat_map(seeded).collect();
        let outcomes = run_all(engine, &runs, workers)?;
        for ((job, window), outcomes) in requested.iter().zip(outcomes.chunks(seeds as usize)) {
            searches[*job].handle_trial(trial(*window, outcomes));
            let rates = outcomes.iter().map(goodput).collect();
            runs_by_window[*job].insert(*window, (rates, mean_rtt(outcomes)));
        }
    }
    Ok(searches.iter().zip(runs_by_window).map(|(search, runs)| result(search, runs)).collect())
}

/// The rates by seed and the mean RTT of each window.
type RunsByWindow = BTreeMap<u64, (Vec<f64>, f64)>;

fn seeded(scenario: &Scenario, window: u64, seeds: u64) -> impl Iterator<Item = Scenario> {
    let sized = with_window(scenario, window);
    (0..seeds).map(move |i| Scenario { seed: sized.seed + i, ..sized.clone() })
}

fn result(search: &Search, runs: RunsByWindow) -> Mft {
    let (window, rate_bps) = search.best().map_or((0, 0.0), |best| (best.window, best.rate_bps));
    let trials = search.trials().copied().collect();
    let (rates, rtts) = runs.into_values().unzip();
    Mft { window, rate_bps, trials, rates, rtts }
}

/// The mean RTT of the first transfer, seconds.
fn mean_rtt(outcomes: &[Outcome]) -> f64 {
    let rtt = |outcome: &Outcome| outcome.transfers.first().map_or(0.0, |first| first.rtt_mean_s);
    outcomes.iter().map(rtt).sum::<f64>() / outcomes.len() as f64
}

fn trial(window: u64, outcomes: &[Outcome]) -> WindowTrial {
    let rates = outcomes.iter().map(goodput);
    WindowTrial {
        window,
        rate_bps: rates.sum::<f64>() / outcomes.len() as f64,
        lossless: outcomes.iter().all(|outcome| outcome.bottleneck.loss_rate == 0.0),
    }
}
