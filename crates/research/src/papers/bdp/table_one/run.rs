//! Runs the cells.

use sweetspot_scenario::{Engine, Outcome, Reverse, Scenario};
use sweetspot_sizing::{BdpDefinition, Sizing};

use super::BUFFERS;
use crate::papers::figure::{Precision, Stage};
use crate::papers::scenarios::{TABLE_1, seeded};
use sweetspot_experiment::run::{goodput, run_all, with_sizing};
use sweetspot_experiment::search::find_mfts;
use sweetspot_experiment::{Mft, SearchBounds, StudyError};
use sweetspot_statistics as statistics;

/// The number of sizings: six schemes, SOBAS as published, SOBAS.
const SIZINGS: usize = 8;

/// One cell as simulated, Mbit/s.
pub(super) struct RunCell {
    /// Load of the tight link in percent.
    pub percent: u64,
    pub scenario: Scenario,
    pub name: String,
    pub schemes: [f64; SIZINGS],
    /// Twice the standard errors of the rates, if there are enough seeds.
    pub half_widths: [Option<f64>; SIZINGS],
    /// Utilisation of the tight link before the transfer, over the last third of that time.
    pub load: f64,
    /// The result of the window search.
    pub mft: Mft,
    /// The Maximum Feasible Throughput: the search's value, until it is measured with seeds that the search
    /// did not use.
    pub best: Best,
}

/// A window, packets, and its rate, bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Best {
    pub window: u64,
    pub rate_bps: f64,
}

/// Runs the cells. Single runs of a cell differ by a few per cent, on the congested path by a fifth, so
/// careful runs use several seeds.
pub(super) fn run(
    engine: &(dyn Engine + Sync),
    stage: &Stage<'_>,
    reverse: Reverse,
) -> Result<Vec<RunCell>, StudyError> {
    let seeds = seeds(stage);
    let mut cells = Vec::new();
    for (percent, file) in &TABLE_1 {
        for buffer in BUFFERS {
            let mut scenario = file.with(&[format!("path.hop.1.buffer={buffer}pkt")])?;
            scenario.path.reverse = reverse;
            cells.push((*percent, format!("{percent} %, {buffer}"), scenario));
        }
    }
    let schemes = BdpDefinition::ALL.map(Sizing::BdpBy).into_iter();
    let sizings: Vec<Sizing> = schemes.chain([Sizing::SobasPaper, Sizing::Sobas]).collect();
    let sized = |scenario: &Scenario, sizing| seeded(&with_sizing(scenario, sizing), seeds);
    let runs: Vec<Scenario> = cells
        .iter()
        .flat_map(|(.., scenario)| sizings.iter().flat_map(move |sizing| sized(scenario, *sizing)))
        .collect();
    let outcomes = run_all(engine, &runs, stage.workers)?;
    let seeds_of_one = seeds as usize;
    let jobs: Vec<(Scenario, SearchBounds)> =
        cells.iter().map(|(.., s)| (s.clone(), bounds(s, stage.precision))).collect();
    let found = find_mfts(engine, &jobs, SEARCH_SEEDS, stage.workers)?;
    let finished = cells.into_iter().zip(outcomes.chunks(SIZINGS * seeds_of_one)).zip(found);
    let cell = |(((percent, name, scenario), outcomes), mft): ((_, &[Outcome]), Mft)| {
        let rates = |i: usize| -> Vec<f64> {
            let of = &outcomes[i * seeds_of_one..(i + 1) * seeds_of_one];
            of.iter().map(|outcome| goodput(outcome) / 1e6).collect()
        };
        let schemes = core::array::from_fn(|i| statistics::mean(&rates(i)).unwrap_or_default());
        let half_widths = core::array::from_fn(|i| {
            statistics::squared_error(&rates(i)).map(|squared| 2.0 * libm::sqrt(squared))
        });
        let best = Best { window: mft.window, rate_bps: mft.rate_bps };
        let loads = outcomes.iter().map(|outcome| outcome.bottleneck.utilisation_before);
        let load = loads.sum::<f64>() / outcomes.len() as f64;
        RunCell { percent, scenario, name, schemes, half_widths, load, mft, best }
    };
    Ok(finished.map(cell).collect())
}

/// Number of seeds of the window search. It only needs to find the few best windows; a race decides among
/// them.
pub(super) const SEARCH_SEEDS: u64 = 1;

/// Number of seeds per scheme.
pub(super) fn seeds(stage: &Stage<'_>) -> u64 {
    stage.precision.seeds(1, 4)
}

/// No best window of the table is below A T_m, which at 70 % load is 187 packets. With spare capacity on
/// the tight link, R is flat near its maximum, so a few per cent of the window cost only a few thousandths
/// of the rate.
fn bounds(scenario: &Scenario, precision: Precision) -> SearchBounds {
    const MIN_WINDOW: u64 = 150;
    let tolerance = match precision {
        Precision::Quick => 0.05,
        Precision::Careful => 0.02,
    };
    SearchBounds { min: MIN_WINDOW, tolerance, ..SearchBounds::around(scenario) }
}
