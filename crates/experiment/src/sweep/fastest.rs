use sweetspot_statistics::{mean, mean_interval};

use super::SweepPoint;

/// Means closer than this share differ by rounding alone.
const ROUNDING: f64 = 1e-9;

/// The fastest of several points, by the goodput of the first transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct Fastest {
    /// Its index. Of several that tie, the first counts: the smallest of several windows.
    pub place: usize,
    /// Its mean over seeds, bit/s.
    pub goodput_bps: f64,
    /// The indices of the others that tie.
    pub ties: Vec<usize>,
}

impl Fastest {
    /// The fastest of `points`; `None` if no point has a goodput above zero.
    pub fn of<'a>(points: impl IntoIterator<Item = &'a SweepPoint>) -> Option<Fastest> {
        let goodputs = |point: &SweepPoint| {
            let first = point.outcomes.iter().filter_map(|outcome| outcome.transfers.first());
            first.map(|transfer| transfer.goodput_bps).collect()
        };
        let rates: Vec<Vec<f64>> = points.into_iter().map(goodputs).collect();
        Fastest::by_rates(&rates)
    }

    /// By the rates of each point, one per seed. A point ties unless it is surely slower, by the 95 % interval of the
    /// differences seed by seed: all points have the same seeds. One seed shows no chance; then only equal rates tie.
    fn by_rates(rates: &[Vec<f64>]) -> Option<Fastest> {
        let means = || rates.iter().enumerate().filter_map(|(i, rates)| Some((i, mean(rates)?)));
        let (best, highest) = means().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        if highest <= 0.0 {
            return None;
        }
        let is_level = |(place, mean): &(usize, f64)| {
            let slower: Vec<f64> =
                rates[best].iter().zip(&rates[*place]).map(|(best, rate)| best - rate).collect();
            let chance = mean_interval(&slower).map_or(0.0, |(_, half)| half);
            highest - mean <= chance.max(highest * ROUNDING)
        };
        let mut level = means().filter(is_level);
        let (place, goodput_bps) = level.next()?;
        Some(Fastest { place, goodput_bps, ties: level.map(|(place, _)| place).collect() })
    }

    /// The end of a sentence that names those that tie, with the name of each point.
    pub fn ties_in_words(&self, name: impl Fn(usize) -> String) -> String {
        /// More names than this make no sentence.
        const MAX_NAMES: usize = 3;
        match self.ties.len() {
            0 => String::new(),
            n if n > MAX_NAMES => format!("; {n} others are as fast"),
            _ => {
                let names: Vec<String> = self.ties.iter().map(|tie| name(*tie)).collect();
                format!("; as fast: {}", names.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(rates: &[&[f64]]) -> Option<(usize, Vec<usize>)> {
        let rates: Vec<Vec<f64>> = rates.iter().map(|rates| rates.to_vec()).collect();
        Fastest::by_rates(&rates).map(|fastest| (fastest.place, fastest.ties))
    }

    #[test]
    fn with_one_seed_only_equal_rates_tie_and_the_first_is_named() {
        assert_eq!(places(&[&[10.0], &[100.0], &[100.0]]), Some((1, vec![2])));
        assert_eq!(places(&[&[10.0], &[99.9], &[100.0]]), Some((2, vec![])));
        assert_eq!(places(&[&[], &[]]), None);
    }

    #[test]
    fn nothing_is_fastest_where_nothing_moved() {
        assert_eq!(places(&[&[0.0, 0.0], &[0.0, 0.0]]), None);
    }

    #[test]
    fn differences_that_chance_explains_tie() {
        // Differences 3, -1, 1: mean 1, standard error 2/sqrt(3) = 1.155, t(0.975, 2) = 4.303: 1 +- 4.97.
        assert_eq!(places(&[&[97.0, 101.0, 99.0], &[100.0, 100.0, 100.0]]), Some((0, vec![1])));
    }

    #[test]
    fn seeds_are_compared_one_by_one() {
        // The seeds differ by 10 and more, the points by 1.0 +- 0.25 under each: error 0.1/sqrt(3), times 4.303.
        let (slower, faster) = ([89.1, 99.0, 108.9], [90.0, 100.0, 110.0]);
        assert_eq!(places(&[&slower, &faster]), Some((1, vec![])));
    }

    #[test]
    fn few_ties_are_named_and_many_counted() {
        let words = |ties: &[usize]| {
            let fastest = Fastest { place: 0, goodput_bps: 1e6, ties: ties.to_vec() };
            fastest.ties_in_words(|place| format!("{place}pkt"))
        };
        assert_eq!(words(&[]), "");
        assert_eq!(words(&[1, 2]), "; as fast: 1pkt, 2pkt");
        assert_eq!(words(&[1, 2, 3, 4, 5]), "; 5 others are as fast");
    }
}
