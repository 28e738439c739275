use sweetspot_statistics::{mean, mean_interval};

use sweetspot_units::Rate;

use super::SweepPoint;

/// Means closer than this share differ by rounding alone.
const ROUNDING: f64 = 1e-9;

/// The fastest of several points, by the goodput of the first transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct Fastest {
    /// Its index: the highest mean. Of several with the same mean, the first counts: the smallest of several windows.
    pub place: usize,
    /// Its mean over seeds, bit/s.
    pub goodput_bps: f64,
    /// The indices of the others with the same mean.
    pub equal: Vec<usize>,
    /// The others that chance may have made slower, with their means in bit/s.
    pub unsure: Vec<(usize, f64)>,
    /// Number of seeds.
    pub seeds: usize,
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

    /// By the rates of each point, one per seed. A point is unsure unless it is surely slower, by the 95 % interval of the
    /// differences seed by seed: all points have the same seeds. One seed shows no chance; then none is unsure.
    fn by_rates(rates: &[Vec<f64>]) -> Option<Fastest> {
        let means = || rates.iter().enumerate().filter_map(|(i, rates)| Some((i, mean(rates)?)));
        let highest = means().map(|(_, mean)| mean).max_by(f64::total_cmp)?;
        if highest <= 0.0 {
            return None;
        }
        let is_equal = |mean: f64| highest - mean <= highest * ROUNDING;
        let mut all_equal = means().filter(|(_, mean)| is_equal(*mean));
        let (place, goodput_bps) = all_equal.next()?;
        let equal = all_equal.map(|(place, _)| place).collect();
        let is_unsure = |(other, mean): &(usize, f64)| {
            let pairs = rates[place].iter().zip(&rates[*other]);
            let slower: Vec<f64> = pairs.map(|(best, rate)| best - rate).collect();
            !is_equal(*mean)
                && mean_interval(&slower).is_some_and(|(_, half)| highest - mean <= half)
        };
        let unsure = means().filter(is_unsure).collect();
        Some(Fastest { place, goodput_bps, equal, unsure, seeds: rates[place].len() })
    }

    /// The end of a sentence that names the others that may be as fast, with the name of each point.
    pub fn others_in_words(&self, name: impl Fn(usize) -> String) -> String {
        /// More names than this make no sentence.
        const MAX_NAMES: usize = 3;
        let mut words = match self.equal.len() {
            0 => String::new(),
            n if n > MAX_NAMES => format!("; {n} others are as fast"),
            _ => {
                let names: Vec<String> = self.equal.iter().map(|other| name(*other)).collect();
                format!("; as fast: {}", names.join(", "))
            }
        };
        let others = match self.unsure.as_slice() {
            [] => return words,
            few if few.len() <= MAX_NAMES => {
                let rate = |bps| Rate::from_f64(bps);
                let named = few.iter().map(|(at, bps)| format!("{} ({})", name(*at), rate(*bps)));
                named.collect::<Vec<_>>().join(", ")
            }
            many => {
                let rates = || many.iter().map(|(_, bps)| *bps);
                let (low, high) = rates().fold((f64::INFINITY, 0.0_f64), |(low, high), bps| {
                    (low.min(bps), high.max(bps))
                });
                let [low, high] = [low, high].map(Rate::from_f64);
                format!("{} others ({low} to {high})", many.len())
            }
        };
        words.push_str(&format!("; {} seeds cannot tell it from {others}", self.seeds));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place of the fastest, those equal to it, and those that chance may have made slower.
    fn places(rates: &[&[f64]]) -> Option<(usize, Vec<usize>, Vec<usize>)> {
        let rates: Vec<Vec<f64>> = rates.iter().map(|rates| rates.to_vec()).collect();
        Fastest::by_rates(&rates).map(|fastest| {
            let unsure = fastest.unsure.iter().map(|(place, _)| *place).collect();
            (fastest.place, fastest.equal, unsure)
        })
    }

    #[test]
    fn with_one_seed_only_equal_rates_tie_and_the_first_is_named() {
        assert_eq!(places(&[&[10.0], &[100.0], &[100.0]]), Some((1, vec![2], vec![])));
        assert_eq!(places(&[&[10.0], &[99.9], &[100.0]]), Some((2, vec![], vec![])));
        assert_eq!(places(&[&[], &[]]), None);
    }

    #[test]
    fn nothing_is_fastest_where_nothing_moved() {
        assert_eq!(places(&[&[0.0, 0.0], &[0.0, 0.0]]), None);
    }

    #[test]
    fn the_highest_mean_is_the_fastest_even_if_chance_explains_the_difference() {
        // Differences 3, -1, 1: mean 1, standard error 2/sqrt(3) = 1.155, t(0.975, 2) = 4.303: 1 +- 4.97.
        let rates: [&[f64]; 2] = [&[97.0, 101.0, 99.0], &[100.0, 100.0, 100.0]];
        assert_eq!(places(&rates), Some((1, vec![], vec![0])));
    }

    #[test]
    fn seeds_are_compared_one_by_one() {
        // The seeds differ by 10 and more, the points by 1.0 +- 0.25 under each: error 0.1/sqrt(3), times 4.303.
        let (slower, faster) = ([89.1, 99.0, 108.9], [90.0, 100.0, 110.0]);
        assert_eq!(places(&[&slower, &faster]), Some((1, vec![], vec![])));
    }

    #[test]
    fn few_others_are_named_and_many_counted() {
        let words = |equal: &[usize], unsure: &[(usize, f64)]| {
            let (equal, unsure) = (equal.to_vec(), unsure.to_vec());
            let fastest = Fastest { place: 0, goodput_bps: 9e6, equal, unsure, seeds: 2 };
            fastest.others_in_words(|place| format!("{place}pkt"))
        };
        assert_eq!(words(&[], &[]), "");
        assert_eq!(words(&[1, 2], &[]), "; as fast: 1pkt, 2pkt");
        assert_eq!(words(&[1, 2, 3, 4, 5], &[]), "; 5 others are as fast");
        let unsure = [(1, 8e6), (2, 7.5e6), (3, 8.25e6), (4, 8e6)];
        assert_eq!(
            words(&[], &unsure[..2]),
            "; 2 seeds cannot tell it from 1pkt (8 Mbit/s), 2pkt (7.5 Mbit/s)"
        );
        assert_eq!(
            words(&[], &unsure),
            "; 2 seeds cannot tell it from 4 others (7.5 Mbit/s to 8.25 Mbit/s)"
        );
    }
}
