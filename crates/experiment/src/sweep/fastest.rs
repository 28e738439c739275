use sweetspot_statistics::{mean, mean_interval};

use sweetspot_units::{Duration, Rate};

use super::SweepPoint;
use crate::KeyNumbers;

/// Means closer than this share differ only by rounding.
const ROUNDING: f64 = 1e-9;
/// Rates that differ by less than this share count as equal, whatever the seeds.
const INDIFFERENCE: f64 = 0.005;
/// A rate lower by more than this share is not as fast, even if a few seeds cannot exclude chance.
const MAX_SHORTFALL: f64 = 0.02;

/// Whether `rates` are as fast as `best`, compared seed by seed: slower by at most 0.5 %, or by at most 2 % if chance explains
/// the difference with 95 % confidence.
pub(crate) fn is_as_fast(rates: &[f64], best: &[f64]) -> bool {
    let (Some(rate), Some(highest)) = (mean(rates), mean(best)) else { return false };
    let shortfall = highest - rate;
    if shortfall <= highest * INDIFFERENCE {
        return true;
    }
    let slower: Vec<f64> = best.iter().zip(rates).map(|(best, rate)| best - rate).collect();
    shortfall <= highest * MAX_SHORTFALL
        && mean_interval(&slower).is_some_and(|(_, half)| shortfall <= half)
}

/// The reason why a point is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advantage {
    /// It has the smallest window of those as fast as the fastest.
    SmallestWindow,
    /// It has the shortest RTT of those as fast as the fastest.
    ShortestRtt,
    /// It has the highest rate.
    Rate,
}

/// The fastest of several points, by the goodput of the first transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct Fastest {
    /// The index of the point with the highest mean; of equal means the first, which has the smallest window.
    pub place: usize,
    /// The point's mean over the seeds, bit/s.
    pub goodput_bps: f64,
    /// The indices of the other points within 0.5 %.
    pub alike: Vec<usize>,
    /// Further points that may be slower only by chance, with their means, bit/s.
    pub unsure: Vec<(usize, f64)>,
    /// All points as fast as the fastest, including itself, with their means, bit/s: within 0.5 %, or within 2 % and chance.
    pub level: Vec<(usize, f64)>,
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

    /// The fastest, from the rates of each point, one per seed. A point is unsure unless it is certainly slower, by the 95 %
    /// interval of the differences seed by seed; all points have the same seeds. With one seed no point is unsure.
    pub(crate) fn by_rates(rates: &[Vec<f64>]) -> Option<Fastest> {
        let means = || rates.iter().enumerate().filter_map(|(i, rates)| Some((i, mean(rates)?)));
        let highest = means().map(|(_, mean)| mean).max_by(f64::total_cmp)?;
        if highest <= 0.0 {
            return None;
        }
        let within = |mean: f64, share: f64| highest - mean <= highest * share;
        let (place, goodput_bps) = means().find(|(_, mean)| within(*mean, ROUNDING))?;
        let is_alike =
            |(other, mean): &(usize, f64)| *other != place && within(*mean, INDIFFERENCE);
        let alike = means().filter(is_alike).map(|(place, _)| place).collect();
        let is_unsure = |(other, mean): &(usize, f64)| {
            let pairs = rates[place].iter().zip(&rates[*other]);
            let slower: Vec<f64> = pairs.map(|(best, rate)| best - rate).collect();
            !within(*mean, INDIFFERENCE)
                && mean_interval(&slower).is_some_and(|(_, half)| highest - mean <= half)
        };
        let unsure = means().filter(is_unsure).collect();
        let is_level = |(other, _): &(usize, f64)| is_as_fast(&rates[*other], &rates[place]);
        let level = means().filter(is_level).collect();
        Some(Fastest { place, goodput_bps, alike, unsure, level, seeds: rates[place].len() })
    }

    /// The best point with its mean, bit/s, and the reason: of the points as fast as the fastest, the one with the smallest
    /// window or the shortest RTT. `values` has a list for each point, and `rtts` an RTT.
    pub fn best(&self, values: &[&[String]], rtts: &[Option<Duration>]) -> (usize, f64, Advantage) {
        let as_fast = |best: Option<(usize, f64)>, advantage| {
            best.map(|(place, goodput_bps)| (place, goodput_bps, advantage))
        };
        as_fast(self.smallest_window(values), Advantage::SmallestWindow)
            .or_else(|| as_fast(self.shortest_rtt(rtts), Advantage::ShortestRtt))
            .unwrap_or((self.place, self.goodput_bps, Advantage::Rate))
    }

    /// The point with the smallest fixed window among those that are as fast and differ from the fastest only in that window;
    /// `None` if the fastest has it. `values` has a list for each point.
    fn smallest_window(&self, values: &[&[String]]) -> Option<(usize, f64)> {
        let fastest = *values.get(self.place)?;
        (0..fastest.len()).find_map(|key| {
            let of_key = || values.iter().filter_map(|values| values.get(key));
            if !of_key().all(|value| value.starts_with("fixed:")) {
                return None;
            }
            let windows = KeyNumbers::of(of_key().map(String::as_str))?.numbers;
            let is_alike = |other: &[String]| {
                (0..fastest.len()).all(|k| k == key || other.get(k) == fastest.get(k))
            };
            let alike = self.level.iter().filter(|(place, _)| is_alike(values[*place]));
            let smallest = alike.min_by(|(a, _), (b, _)| {
                windows[*a].unwrap_or(f64::MAX).total_cmp(&windows[*b].unwrap_or(f64::MAX))
            });
            smallest.copied().filter(|(place, _)| *place != self.place)
        })
    }

    /// The point with the shortest RTT among those that are as fast; `None` if it is the fastest, or if it is shorter by at most
    /// 0.5 %. `rtts` has an RTT for each point.
    fn shortest_rtt(&self, rtts: &[Option<Duration>]) -> Option<(usize, f64)> {
        let rtt = |place: usize| rtts.get(place).copied().flatten();
        let level = self.level.iter().filter(|(place, _)| rtt(*place).is_some());
        let shortest = level.min_by_key(|(place, _)| rtt(*place)).copied()?;
        let at_least = rtt(self.place)?.as_secs_f64() * (1.0 - INDIFFERENCE);
        (rtt(shortest.0)?.as_secs_f64() < at_least).then_some(shortest)
    }

    /// Up to two clauses that name the other points that may be as fast; `name` returns a point's name.
    pub fn others_in_words(&self, name: impl Fn(usize) -> String) -> Vec<String> {
        /// Maximum number of names in a sentence, without and with a rate after each.
        const MAX_NAMES: usize = 5;
        const MAX_RATES: usize = 2;
        let mut clauses = match self.alike.len() {
            0 => Vec::new(),
            n if n > MAX_NAMES => vec![format!("{n} others are as fast")],
            _ => {
                let names: Vec<String> = self.alike.iter().map(|other| name(*other)).collect();
                vec![format!("as fast: {}", names.join(", "))]
            }
        };
        let others = match self.unsure.as_slice() {
            [] => return clauses,
            few if few.len() <= MAX_RATES => {
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
        clauses.push(format!("{} seeds are too few to tell it from {others}", self.seeds));
        clauses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The index of the fastest, those within 0.5 %, and those that may be slower only by chance.
    fn places(rates: &[&[f64]]) -> Option<(usize, Vec<usize>, Vec<usize>)> {
        let rates: Vec<Vec<f64>> = rates.iter().map(|rates| rates.to_vec()).collect();
        Fastest::by_rates(&rates).map(|fastest| {
            let unsure = fastest.unsure.iter().map(|(place, _)| *place).collect();
            (fastest.place, fastest.alike, unsure)
        })
    }

    #[test]
    fn rates_within_half_a_percent_tie_and_the_first_equal_one_wins() {
        assert_eq!(places(&[&[10.0], &[100.0], &[100.0]]), Some((1, vec![2], vec![])));
        assert_eq!(places(&[&[99.4], &[99.6], &[100.0]]), Some((2, vec![1], vec![])));
        // Even though it is certain: the difference is 0.1 under every seed.
        let rates: [&[f64]; 2] = [&[99.9, 99.9], &[100.0, 100.0]];
        assert_eq!(places(&rates), Some((1, vec![0], vec![])));
        assert_eq!(places(&[&[], &[]]), None);
    }

    #[test]
    fn no_point_is_fastest_if_all_rates_are_zero() {
        assert_eq!(places(&[&[0.0, 0.0], &[0.0, 0.0]]), None);
    }

    #[test]
    fn the_highest_mean_is_fastest_even_if_the_difference_is_insignificant() {
        // Differences 3, -1, 1: mean 1, standard error 2/sqrt(3) = 1.155, t(0.975, 2) = 4.303: 1 +- 4.97.
        let rates: [&[f64]; 2] = [&[97.0, 101.0, 99.0], &[100.0, 100.0, 100.0]];
        assert_eq!(places(&rates), Some((1, vec![], vec![0])));
    }

    #[test]
    fn points_are_compared_seed_by_seed() {
        // The seeds differ by 10 and more, but the points by 1.0 +- 0.25 under each: standard error 0.1/sqrt(3), times 4.303.
        let (slower, faster) = ([89.1, 99.0, 108.9], [90.0, 100.0, 110.0]);
        assert_eq!(places(&[&slower, &faster]), Some((1, vec![], vec![])));
    }

    #[test]
    fn a_few_ties_are_listed_and_many_are_counted() {
        let words = |alike: &[usize], unsure: &[(usize, f64)]| {
            let (alike, unsure) = (alike.to_vec(), unsure.to_vec());
            let fastest =
                Fastest { place: 0, goodput_bps: 9e6, alike, unsure, level: vec![], seeds: 2 };
            fastest.others_in_words(|place| format!("{place}pkt")).join("; ")
        };
        assert_eq!(words(&[], &[]), "");
        assert_eq!(words(&[1, 2], &[]), "as fast: 1pkt, 2pkt");
        assert_eq!(words(&[1, 2, 3, 4, 5, 6], &[]), "6 others are as fast");
        let unsure = [(1, 8e6), (2, 7.5e6), (3, 8.25e6), (4, 8e6), (5, 8e6), (6, 8e6)];
        assert_eq!(
            words(&[], &unsure[..2]),
            "2 seeds are too few to tell it from 1pkt (8 Mbit/s), 2pkt (7.5 Mbit/s)"
        );
        assert_eq!(
            words(&[], &unsure[..3]),
            "2 seeds are too few to tell it from 3 others (7.5 Mbit/s to 8.25 Mbit/s)"
        );
        assert_eq!(
            words(&[], &unsure),
            "2 seeds are too few to tell it from 6 others (7.5 Mbit/s to 8.25 Mbit/s)"
        );
    }

    #[test]
    fn the_shortest_rtt_is_chosen_among_the_fastest_points() {
        // 90 is slower by 10 %, the others by at most 0.5 %.
        let rates: Vec<Vec<f64>> =
            [90.0, 99.6, 99.8, 100.0].iter().map(|rate| vec![*rate]).collect();
        let fastest = Fastest::by_rates(&rates).unwrap();
        let shortest = |millis: [u64; 4]| {
            let rtts = millis.map(|millis| Some(Duration::from_millis(millis)));
            fastest.shortest_rtt(&rtts).map(|(place, _)| place)
        };
        assert_eq!(shortest([10, 30, 40, 280]), Some(1));
        assert_eq!(shortest([10, 300, 40, 280]), Some(2));
        // The fastest has the shortest RTT, or one longer by only 0.4 %.
        assert_eq!(shortest([10, 300, 290, 280]), None);
        assert_eq!(shortest([10, 300, 279, 280]), None);
        assert_eq!(fastest.shortest_rtt(&[None; 4]), None);
    }

    #[test]
    fn the_smallest_fast_window_comes_from_the_fastest_combination() {
        let rates: Vec<Vec<f64>> =
            [90.0, 99.6, 99.8, 100.0, 99.9].iter().map(|rate| vec![*rate]).collect();
        let fastest = Fastest::by_rates(&rates).unwrap();
        let smallest = |written: [[&str; 2]; 5]| {
            let values = written.map(|values| values.map(str::to_owned));
            let values: Vec<&[String]> = values.iter().map(<[String; 2]>::as_slice).collect();
            fastest.smallest_window(&values).map(|(place, _)| place)
        };
        let buffers = ["1", "1", "1", "1", "2"];
        let with = |windows: [&'static str; 5]| std::array::from_fn(|i| [buffers[i], windows[i]]);
        // 20 packets are slower by 10 %, 40 by 0.4 %; the case with 30 has another buffer.
        let windows = ["fixed:20pkt", "fixed:40pkt", "fixed:60pkt", "fixed:100pkt", "fixed:30pkt"];
        assert_eq!(smallest(with(windows)), Some(1));
        // The fastest has the smallest window of those that are as fast.
        let windows = ["fixed:20pkt", "fixed:90pkt", "fixed:60pkt", "fixed:50pkt", "fixed:30pkt"];
        assert_eq!(smallest(with(windows)), None);
        // No window is swept.
        assert_eq!(smallest(with(["1", "2", "3", "4", "5"])), None);
    }
}
