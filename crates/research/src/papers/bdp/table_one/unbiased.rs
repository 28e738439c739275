//! SOBAS's fraction of the Maximum Feasible Throughput, without selection bias (the winner's curse).

use sweetspot_scenario::{Engine, Outcome, Scenario};
use sweetspot_sizing::Sizing;

use super::REQUIRED_SHARE;
use super::run::{Best, RunCell, SEARCH_SEEDS};
use crate::papers::figure::{Precision, Stage};
use crate::papers::scenarios::seeded;
use sweetspot_experiment::plot::Table;
use sweetspot_experiment::run::{goodput, run_all, with_sizing, with_window};
use sweetspot_experiment::search::{CANDIDATES, RACE_SEEDS, Race, choose, fresh};
use sweetspot_experiment::{Mft, Spread, StudyError};
use sweetspot_statistics as statistics;

const HEADS: [&str; 8] = [
    "rho, B_t",
    "seeds of each candidate",
    "chosen S",
    "fresh seeds",
    "MFT",
    "sobas",
    "sobas / MFT",
    "MFT as searched",
];

const TITLE: &str = "The same on seeds that were not used to choose, Mbit/s with 95 % confidence";

/// Number of seeds used neither in the search nor in the race. On the congested path single runs of one window differ by a
/// sixth of their mean, elsewhere by a fiftieth: this number reduces the mean's error to about 3 % and 1 %.
fn fresh_seeds(percent: u64) -> u64 {
    if percent >= 100 { 32 } else { 8 }
}

/// How the Maximum Feasible Throughput is searched and measured.
pub(super) fn about(stage: &Stage<'_>) -> String {
    let curse = "The largest of many noisy means is on average too large: a window wins because it is \
                 good and because its seeds were kind to it (the winner's curse).";
    if stage.precision == Precision::Quick {
        return format!(
            "*MFT @ S* is the plain maximum over all windows tried. {curse} With one seed, as here, \
             that is up to a half on the congested path, and how uncertain a number is cannot be \
             said; `--careful` does both."
        );
    }
    format!(
        "{curse} So windows are chosen and measured on different seeds. The search tries some \
         thirty to forty windows under {} seed(s); the best {CANDIDATES} of them race: each round runs those still in \
         it under as many seeds again, all the same ones (common random numbers), and keeps the better half, until one is \
         left, none can be better by half a per cent with 95 % confidence, or {RACE_SEEDS} seeds are \
         run (sequential halving). *MFT @ S* is what the winner gets on fresh seeds, which is unbiased for that \
         window, as `sobas` on the same fresh seeds is in the second table. After +- stand half the 95 % confidence intervals \
         (Student's t; the share's is that of a ratio over common seeds). What the search alone would say stands in the last column.",
        SEARCH_SEEDS
    )
}

/// Chooses a window for each cell and, in careful runs, runs it and SOBAS with seeds not used in the choice. These windows then
/// become the cells' best windows.
pub(super) fn table(
    engine: &(dyn Engine + Sync),
    stage: &Stage<'_>,
    finished: &mut [RunCell],
) -> Result<Option<Table>, StudyError> {
    if stage.precision == Precision::Quick {
        return Ok(None);
    }
    let found: Vec<(&Scenario, &Mft)> = finished.iter().map(|c| (&c.scenario, &c.mft)).collect();
    let races = choose(engine, &found, stage.workers)?;
    let runs: Vec<Vec<Scenario>> =
        finished.iter().zip(&races).map(|(cell, race)| fresh_runs(cell, race)).collect();
    let outcomes = run_all(engine, &runs.concat(), stage.workers)?;
    let mut rest = &outcomes[..];
    let mut table = Table::new(TITLE, &HEADS);
    for ((cell, race), runs) in finished.iter_mut().zip(&races).zip(&runs) {
        let (of_cell, further) = rest.split_at(runs.len());
        rest = further;
        let mbit = |of: &[Outcome]| of.iter().map(|o| goodput(o) / 1e6).collect::<Vec<f64>>();
        let (best, sobas) = of_cell.split_at(runs.len() / 2);
        let (best, sobas) = (mbit(best), mbit(sobas));
        let window = chosen(cell, race);
        let rate_bps = statistics::mean(&best).unwrap_or_default() * 1e6;
        cell.best = Best { window, rate_bps };
        table.rows.push(row(cell, race, &best, &sobas));
    }
    Ok(Some(table))
}

/// The winning window; without a race, the window found by the search.
fn chosen(cell: &RunCell, race: &Race) -> u64 {
    race.best().map_or(cell.mft.window, |best| best.window)
}

/// The chosen window and SOBAS, each with all fresh seeds.
fn fresh_runs(cell: &RunCell, race: &Race) -> Vec<Scenario> {
    let scenario = fresh(&cell.scenario);
    let sized = [with_window(&scenario, chosen(cell, race)), with_sizing(&scenario, Sizing::Sobas)];
    sized.iter().flat_map(|scenario| seeded(scenario, fresh_seeds(cell.percent))).collect()
}

fn row(cell: &RunCell, race: &Race, best: &[f64], sobas: &[f64]) -> Vec<String> {
    let share = Share::of(sobas, best);
    let mark = if share.share < REQUIRED_SHARE { "*" } else { "" };
    let mut entrants: Vec<_> = race.entrants().iter().collect();
    entrants.sort_by_key(|entrant| entrant.window);
    let entrants = entrants.iter().map(|e| format!("{}: {}", e.window, e.rates.len()));
    vec![
        cell.name.clone(),
        entrants.collect::<Vec<_>>().join(", "),
        cell.best.window.to_string(),
        best.len().to_string(),
        spread(best),
        spread(sobas),
        format!("{:.1} +- {:.1} %{mark}", share.share * 100.0, share.half_width * 100.0),
        format!("{:.2}", cell.mft.rate_bps / 1e6),
    ]
}

fn spread(rates: &[f64]) -> String {
    Spread::of(rates).map_or(String::new(), |spread| {
        format!("{:.2} +- {:.2}", spread.mean, spread.half_width.unwrap_or(0.0))
    })
}

/// A mean as a fraction of another mean over the same seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Share {
    share: f64,
    half_width: f64,
}

impl Share {
    /// The ratio estimator and its error (W. G. Cochran, *Sampling Techniques*, section 2.11): variation common to both does
    /// not add to the error of the ratio.
    fn of(ours: &[f64], whole: &[f64]) -> Share {
        let whole_sum: f64 = whole.iter().sum();
        let share = ours.iter().sum::<f64>() / whole_sum;
        let off: Vec<f64> = ours.iter().zip(whole).map(|(our, all)| our - share * all).collect();
        let half_width = Spread::of(&off).and_then(|spread| spread.half_width).unwrap_or(0.0);
        Share { share, half_width: half_width * whole.len() as f64 / whole_sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variation_shared_by_both_terms_adds_no_error_to_a_share() {
        // Half of the whole for every seed, whatever the whole is.
        let share = Share::of(&[1.0, 2.0, 4.0], &[2.0, 4.0, 8.0]);
        assert_eq!(share, Share { share: 0.5, half_width: 0.0 });
    }

    #[test]
    fn a_share_inherits_the_relative_uncertainty_of_its_numerator() {
        // The whole is always 2; ours is 1, 2, 3, 4, 5: the half width of the mean is 1.96325 (see Spread), and of the ratio
        // half of that.
        let share = Share::of(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0; 5]);
        assert_eq!(share.share, 1.5);
        assert!((share.half_width - 1.963_25 / 2.0).abs() < 1e-4, "{share:?}");
    }
}
