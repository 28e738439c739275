//! SOBAS's share of the Maximum Feasible Throughput, without selection bias (the winner's curse).

use sweetspot_scenario::{Engine, Outcome, Scenario};
use sweetspot_sizing::Sizing;

use super::SHARE_ASKED;
use super::play::{PlayedCell, seeds};
use crate::papers::catalogue::{Precision, Stage};
use crate::papers::scenarios::seeded;
use crate::play::{goodput, play_all, with_sizing, with_window};
use crate::plot::Table;
use crate::search::SplitBest;
use crate::{Mft, Spread, StudyError};

/// Windows that the search found best and that are played again.
const CANDIDATES: usize = 6;

const HEADS: [&str; 8] = [
    "rho, B_t",
    "seeds",
    "candidates",
    "chosen S",
    "MFT, split",
    "sobas",
    "sobas / MFT, split",
    "MFT as searched",
];

const TITLE: &str = "The same without the winner's curse, Mbit/s with 95 % confidence";

/// Seeds that no search has seen. On the congested path single runs of one window differ by a
/// sixth, elsewhere by a fiftieth of their mean: so many bring the mean's error to some 3 % and 1
/// %.
fn fresh_seeds(percent: u64) -> u64 {
    if percent >= 100 { 32 } else { 8 }
}

/// A note on the bias of the plain maximum.
pub(super) fn about(precision: Precision) -> String {
    let curse = "The largest of many noisy means is on average too large: a window wins because it is \
                 good and because its seeds were kind to it (the winner's curse).";
    if precision == Precision::Quick {
        return format!(
            "{curse} With one seed, as here, that is up to a half on the congested path, and how \
             uncertain a number is cannot be prediction; `--careful` does both."
        );
    }
    format!(
        "{curse} So the second table plays the {CANDIDATES} best windows of each search again, on \
         seeds that the search has not seen: every other one of these chooses a window, the rest \
         measure what it gets, and the other way round; *MFT, split* is the mean of both. Luck that \
         helped a window to be chosen does not help it to be measured, so this is unbiased for the \
         windows chosen, as `sobas` beside it is, on the same seeds. After +- stand half the 95 % \
         confidence intervals (Student's t; the share's is that of a ratio over common seeds). The \
         plain maximum is repeated in the last column."
    )
}

/// Plays the best windows of each search, and SOBAS, on seeds that the search has not seen, where
/// precision is asked for.
pub(super) fn table(
    engine: &(dyn Engine + Sync),
    stage: &Stage<'_>,
    played: &[PlayedCell],
) -> Result<Option<Table>, StudyError> {
    if stage.precision == Precision::Quick {
        return Ok(None);
    }
    let mut table = Table::new(TITLE, &HEADS);
    for cell in played {
        let count = fresh_seeds(cell.percent);
        let first = cell.scenario.seed + seeds(stage);
        let scenario = Scenario { seed: first, ..cell.scenario.clone() };
        let windows = candidates(&cell.mft);
        let sized = windows.iter().map(|window| with_window(&scenario, *window));
        let all = sized.chain([with_sizing(&scenario, Sizing::Sobas)]);
        let runs: Vec<Scenario> = all.flat_map(|scenario| seeded(&scenario, count)).collect();
        let outcomes = play_all(engine, &runs, stage.workers)?;
        let mbit = |of: &[Outcome]| of.iter().map(|o| goodput(o) / 1e6).collect::<Vec<f64>>();
        let mut rates: Vec<Vec<f64>> = outcomes.chunks(count as usize).map(mbit).collect();
        let Some((sobas, best)) = rates.pop().zip(SplitBest::of(&rates)) else { continue };
        table.rows.push(row(cell, &windows, &sobas, &best));
    }
    Ok(Some(table))
}

/// The best windows tried, in the order of their size.
fn candidates(mft: &Mft) -> Vec<u64> {
    let mut trials = mft.trials.clone();
    trials.sort_by(|a, b| b.rate_bps.total_cmp(&a.rate_bps));
    let mut windows: Vec<u64> = trials.iter().take(CANDIDATES).map(|trial| trial.window).collect();
    windows.sort_unstable();
    windows
}

fn row(cell: &PlayedCell, windows: &[u64], sobas: &[f64], best: &SplitBest) -> Vec<String> {
    let share = Share::of(sobas, &best.rates);
    let mark = if share.share < SHARE_ASKED { "*" } else { "" };
    let list = |windows: &[u64]| windows.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    vec![
        cell.name.clone(),
        sobas.len().to_string(),
        list(windows),
        list(&best.chosen.map(|place| windows[place])),
        spread(&best.rates),
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

/// A mean as a share of another one over the same seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Share {
    share: f64,
    half_width: f64,
}

impl Share {
    /// The ratio estimator and its error (W. G. Cochran, *Sampling Techniques*, section 2.11): what
    /// seeds have in common with one another is no error of the ratio.
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
    fn what_seeds_have_in_common_is_no_error_of_a_share() {
        // Half of the whole on every seed, whatever that was.
        let share = Share::of(&[1.0, 2.0, 4.0], &[2.0, 4.0, 8.0]);
        assert_eq!(share, Share { share: 0.5, half_width: 0.0 });
    }

    #[test]
    fn a_share_is_as_uncertain_as_what_it_is_off_by() {
        // Whole 2 always; ours 1, 2, 3, 4, 5: the mean's half width is 1.96325 (see Spread), of
        // the whole a half of that.
        let share = Share::of(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0; 5]);
        assert_eq!(share.share, 1.5);
        assert!((share.half_width - 1.963_25 / 2.0).abs() < 1e-4, "{share:?}");
    }
}
