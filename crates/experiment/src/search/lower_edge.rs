//! The smallest window that is as fast as the best one; larger windows only queue.

use sweetspot_scenario::{Engine, Scenario};

use super::bracket::step;
use super::{Mft, mean_rtt, seeded, trial};
use crate::run::{goodput, run_all};
use crate::sweep::is_as_fast;
use crate::{StudyError, Workers};

impl Mft {
    /// The index of the smallest window tried that is as fast as the best one: slower by at most 0.5 %, or by at most 2 %
    /// if chance explains the difference. If the best window has no loss, this one must have none either: among windows
    /// that overflow the buffer, single ones are fast by luck.
    pub fn smallest_as_fast(&self) -> Option<usize> {
        let best = self.trials.iter().position(|trial| trial.window == self.window)?;
        let is_clean = |place: usize| self.trials[place].lossless || !self.trials[best].lossless;
        (0..=best)
            .find(|place| is_clean(*place) && is_as_fast(&self.rates[*place], &self.rates[best]))
    }

    fn insert(&mut self, window: u64, outcomes: &[sweetspot_scenario::Outcome]) {
        let trial = trial(window, outcomes);
        let place = self.trials.partition_point(|before| before.window < window);
        self.trials.insert(place, trial);
        self.rates.insert(place, outcomes.iter().map(goodput).collect());
        self.rtts.insert(place, mean_rtt(outcomes));
        if trial.rate_bps > self.rate_bps {
            (self.window, self.rate_bps) = (window, trial.rate_bps);
        }
    }
}

/// Tries windows below [`Mft::smallest_as_fast`] by bisection, until the next smaller window is within `tolerance` of it.
/// `seeds` must be the search's number of seeds.
pub fn narrow_lower_edge<E: Engine + Sync + ?Sized>(
    engine: &E,
    scenario: &Scenario,
    found: &mut Mft,
    tolerance: f64,
    (seeds, workers): (u64, Workers),
) -> Result<(), StudyError> {
    while let Some(place) = found.smallest_as_fast().filter(|place| *place > 0) {
        let (low, high) = (found.trials[place - 1].window, found.trials[place].window);
        if high - low <= step(high, tolerance) {
            break;
        }
        let window = low + (high - low) / 2;
        let runs: Vec<Scenario> = seeded(scenario, window, seeds.max(1)).collect();
        found.insert(window, &run_all(engine, &runs, workers)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WindowTrial;

    /// Windows 1, 2, ... with these rates, by seed.
    fn found(rates: &[&[f64]]) -> Mft {
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
        let trial = |(i, rates): (usize, &&[f64])| WindowTrial {
            window: i as u64 + 1,
            rate_bps: mean(rates),
            lossless: true,
        };
        let trials: Vec<WindowTrial> = rates.iter().enumerate().map(trial).collect();
        let best =
            trials.iter().copied().reduce(|a, b| if b.rate_bps > a.rate_bps { b } else { a });
        let (window, rate_bps) = best.map(|best| (best.window, best.rate_bps)).unwrap();
        let rtts = vec![0.0; trials.len()];
        let rates = rates.iter().map(|rates| rates.to_vec()).collect();
        Mft { window, rate_bps, trials, rates, rtts }
    }

    #[test]
    fn with_one_seed_windows_within_half_a_percent_tie() {
        // 0.51 % slower, 0.5 % slower, the best, and one above the best.
        let rates: [&[f64]; 4] = [&[99.49], &[99.5], &[100.0], &[99.9]];
        assert_eq!(found(&rates).smallest_as_fast(), Some(1));
    }

    #[test]
    fn a_lossy_window_does_not_tie_with_a_lossless_one() {
        let mut found = found(&[&[99.9], &[99.8], &[100.0]]);
        found.trials[0].lossless = false;
        assert_eq!(found.smallest_as_fast(), Some(1));
        found.trials[2].lossless = false;
        assert_eq!(found.smallest_as_fast(), Some(0));
    }

    #[test]
    fn an_insignificant_difference_up_to_two_percent_is_a_tie() {
        // Differences of 0, 2 and 1 percent from the best: 1 +- 4.303 x 1 / sqrt 3 = 2.48.
        let best: &[f64] = &[100.0, 100.0, 100.0];
        assert_eq!(found(&[&[100.0, 98.0, 99.0], best]).smallest_as_fast(), Some(0));
        // All differ by 1 percent, within 0.1: 1 +- 0.25.
        assert_eq!(found(&[&[99.1, 99.0, 98.9], best]).smallest_as_fast(), Some(1));
        // 1, 5 and 3 percent: 3 +- 4.97, but 3 percent is too slow in any case.
        assert_eq!(found(&[&[99.0, 95.0, 97.0], best]).smallest_as_fast(), Some(1));
    }
}
