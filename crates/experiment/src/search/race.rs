//! Finds the best of a few windows by a race over seeds.
//!
//! Sequential halving (Karnin, Koren, Somekh, "Almost optimal exploration in multi-armed bandits", ICML 2013): every
//! window in the race runs under the same seeds, then the better half continues under as many further seeds, so the
//! effort goes to close contenders. All windows meet the same cross traffic (common random numbers), and the race ends
//! early if the remaining windows differ by an irrelevant amount.
//!
//! The winner's mean over the seeds of the race is too high (the winner's curse). Fresh seeds must measure it: seeds
//! that were not used for the choice are unbiased (sample splitting; D. R. Cox, "A note on data-splitting for the
//! evaluation of significance levels", Biometrika 62, 1975).

use sweetspot_statistics::mean;

use crate::Spread;

/// Rates that differ by less than this share count as equal: they are within the search's tolerance.
const INDIFFERENCE: f64 = 0.005;

/// A race as a state machine that does not run anything.
///
/// **Contract.** After [`Race::poll_runs`], report every run it returned with [`Race::handle_rate`] before calling it
/// again.
#[derive(Debug, Clone)]
pub struct Race {
    entrants: Vec<Entrant>,
    /// Number of entrants still in the race. They come first; after the race, the best one is at the front.
    running: usize,
    /// Number of seeds that each of them has run with.
    seeds: usize,
    max_seeds: usize,
    round: usize,
}

/// A window and its rates by seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Entrant {
    /// Packets.
    pub window: u64,
    /// Goodput under each seed so far, bit/s.
    pub rates: Vec<f64>,
}

impl Race {
    /// A race between at least one of `entrants`, all with rates for the same seeds. It ends after `max_seeds` seeds
    /// each.
    pub fn new(entrants: Vec<Entrant>, max_seeds: usize) -> Race {
        let (running, seeds) = (entrants.len(), entrants.first().map_or(0, |e| e.rates.len()));
        Race { entrants, running, seeds, max_seeds, round: 0 }
    }

    /// The next runs, each a window and the index of its seed, from 0. Empty: the race is over.
    pub fn poll_runs(&mut self) -> Vec<(u64, usize)> {
        self.rank();
        if self.round > 0 {
            self.running = self.running.div_ceil(2);
        }
        if self.running <= 1 || self.seeds >= self.max_seeds || self.are_alike() {
            return Vec::new();
        }
        self.round += 1;
        let next = (2 * self.seeds).min(self.max_seeds);
        let seeds = self.seeds..next;
        self.seeds = next;
        let running = &self.entrants[..self.running];
        running.iter().flat_map(|e| seeds.clone().map(|seed| (e.window, seed))).collect()
    }

    /// Handles the rate of a window with its next seed.
    pub fn handle_rate(&mut self, window: u64, rate_bps: f64) {
        let mut running = self.entrants[..self.running].iter_mut();
        if let Some(entrant) = running.find(|entrant| entrant.window == window) {
            entrant.rates.push(rate_bps);
        }
    }

    /// The best window, once the race is over.
    pub fn best(&self) -> Option<&Entrant> {
        self.entrants.first()
    }

    /// All windows, with the rates of their seeds.
    pub fn entrants(&self) -> &[Entrant] {
        &self.entrants
    }

    /// Sorts the entrants still in the race by their mean rates.
    fn rank(&mut self) {
        let of = |entrant: &Entrant| mean(&entrant.rates).unwrap_or_default();
        self.entrants[..self.running].sort_by(|a, b| of(b).total_cmp(&of(a)));
    }

    /// Whether no window in the race can be better than the first by a relevant amount, with 95 % confidence.
    fn are_alike(&self) -> bool {
        let [first, others @ ..] = &self.entrants[..self.running] else { return true };
        let scale = mean(&first.rates).unwrap_or_default() * INDIFFERENCE;
        others.iter().all(|other| {
            let pairs = other.rates.iter().zip(&first.rates);
            let ahead: Vec<f64> = pairs.map(|(other, first)| other - first).collect();
            let spread = Spread::of(&ahead);
            spread.is_some_and(|s| s.half_width.is_some_and(|half| s.mean + half <= scale))
        })
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_path::Random;

    use super::*;

    /// The race of windows 0, 1, ... with these means, with noise `common` to all windows, and noise of each window's
    /// `own`.
    fn race(means: &[f64], (common, own): (f64, f64), seed: u64) -> Race {
        let mut random = Random::new(seed);
        let mut shared = vec![];
        let mut draw = |mean: f64, seed: usize| {
            while shared.len() <= seed {
                shared.push(common * (2.0 * random.unit() - 1.0));
            }
            mean + shared[seed] + own * (2.0 * random.unit() - 1.0)
        };
        let entrant = |(window, mean): (usize, &f64)| {
            let rates = (0..2).map(|seed| draw(*mean, seed)).collect();
            Entrant { window: window as u64, rates }
        };
        let mut race = Race::new(means.iter().enumerate().map(entrant).collect(), 16);
        loop {
            let runs = race.poll_runs();
            if runs.is_empty() {
                return race;
            }
            for (window, seed) in runs {
                race.handle_rate(window, draw(means[window as usize], seed));
            }
        }
    }

    fn runs(race: &Race) -> usize {
        race.entrants().iter().map(|entrant| entrant.rates.len()).sum()
    }

    #[test]
    fn the_better_half_advances_with_twice_as_many_seeds() {
        // All are equal, so no round can distinguish them. Six windows run with 4 seeds, three with 8, two with 16.
        for seed in 0..50 {
            let race = race(&[100.0; 6], (0.0, 20.0), seed);
            let mut seeds: Vec<usize> = race.entrants().iter().map(|e| e.rates.len()).collect();
            seeds.sort_unstable();
            assert_eq!(seeds, [4, 4, 4, 8, 16, 16]);
        }
    }

    #[test]
    fn a_race_with_a_certain_winner_ends_early() {
        // Differences of 10 % with noise of 1 / sqrt 3 = 0.6 %: four seeds suffice.
        let race = race(&[60.0, 110.0, 70.0, 100.0, 80.0, 90.0], (0.0, 1.0), 1);
        assert_eq!(race.best().map(|best| best.window), Some(1));
        assert!(runs(&race) <= 6 * 4, "{}", runs(&race));
    }

    #[test]
    fn noise_common_to_all_windows_cancels_out() {
        // Noise of one half, common to all: differences are known exactly.
        let race = race(&[100.0, 101.0, 99.0, 98.0], (50.0, 0.0), 2);
        assert_eq!(race.best().map(|best| best.window), Some(1));
        // A difference of 1 % matters, and is certain after the first seeds: no other window can be better.
        assert_eq!(runs(&race), 4 * 2);
    }

    #[test]
    fn the_winner_is_on_average_within_one_percent_of_the_best() {
        // Differences of 4 %; noise of 10 / sqrt 3 = 5.8 % per run and 1.4 % over 16 seeds: a difference is 2 standard
        // deviations.
        let means = [100.0, 96.0, 92.0, 88.0, 84.0, 80.0];
        let won = |seed: &u64| race(&means, (0.0, 10.0), *seed).best().unwrap().window;
        let worth: Vec<f64> = (0..400).map(|seed| means[won(&seed) as usize]).collect();
        assert!(mean(&worth).unwrap() > 99.0, "{:?}", mean(&worth));
    }

    #[test]
    fn zero_or_one_windows_need_no_race() {
        assert_eq!(runs(&race(&[5.0], (0.0, 1.0), 1)), 2);
        let mut none = Race::new(Vec::new(), 16);
        assert!(none.poll_runs().is_empty() && none.best().is_none());
    }
}
