use std::collections::BTreeMap;

use sweetspot_scenario::Scenario;

use super::bracket::{Bracket, step};
use super::trial::WindowTrial;

/// The range and accuracy of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchBounds {
    /// The minimum window, packets.
    pub min: u64,
    /// The maximum window, packets.
    pub max: u64,
    /// Allowed distance of the result from the peak, as a share of the window.
    pub tolerance: f64,
}

impl SearchBounds {
    /// From C T_m / 32, below any available bandwidth worth a bulk transfer, to well above C T_m +
    /// B_t, where only congestion control is the limit (eqs 4 and 5).
    pub fn around(scenario: &Scenario) -> SearchBounds {
        let packet = scenario.path.packet;
        let bdp = scenario.path.bdp().get().div_ceil(packet.get());
        let buffer = scenario.path.narrow().buffer.in_packets(packet);
        SearchBounds { min: (bdp / 32).max(2), max: 2 * (bdp + buffer), tolerance: 0.005 }
    }
}

/// The search as a state machine that does not run anything. It names windows, takes their results,
/// and names the next ones.
///
/// **Contract.** After [`Search::poll_windows`], report every window it returned with
/// [`Search::handle_trial`] before calling it again.
#[derive(Debug, Clone)]
pub struct Search {
    bounds: SearchBounds,
    trials: BTreeMap<u64, WindowTrial>,
    stage: SearchStage,
}

#[derive(Debug, Clone)]
enum SearchStage {
    Ladder,
    Narrowing(Vec<Bracket>),
    /// Trying neighbours of the best window, for this many more steps.
    Around {
        steps: u32,
    },
}

/// Rungs per doubling of the window.
const RUNGS_PER_DOUBLING: f64 = 2.0;
/// Maximum number of the ladder's peaks that are narrowed.
const MAX_PEAKS: usize = 2;
/// Maximum number of moves to a better neighbour.
const MAX_NEIGHBOUR_STEPS: u32 = 2;

impl Search {
    /// A search before its first trial.
    pub fn new(bounds: SearchBounds) -> Search {
        Search { bounds, trials: BTreeMap::new(), stage: SearchStage::Ladder }
    }

    /// The next windows to try, none of them tried before; `None`: the search is over.
    pub fn poll_windows(&mut self) -> Option<Vec<u64>> {
        loop {
            let mut requested = match &mut self.stage {
                SearchStage::Ladder => ladder(self.bounds),
                SearchStage::Narrowing(brackets) => {
                    narrow(brackets, &self.trials, self.bounds.tolerance)
                }
                SearchStage::Around { steps: 0 } => return None,
                SearchStage::Around { steps } => {
                    *steps -= 1;
                    self.neighbours()
                }
            };
            requested.retain(|window| !self.trials.contains_key(window));
            requested.sort_unstable();
            requested.dedup();
            if !requested.is_empty() {
                return Some(requested);
            }
            self.stage = match self.stage {
                SearchStage::Ladder => SearchStage::Narrowing(self.brackets()),
                SearchStage::Narrowing(_) => SearchStage::Around { steps: MAX_NEIGHBOUR_STEPS },
                SearchStage::Around { .. } => return None,
            };
        }
    }

    /// Handles the result of a window.
    pub fn handle_trial(&mut self, trial: WindowTrial) {
        self.trials.insert(trial.window, trial);
    }

    /// The best window so far; of equal windows, the smallest.
    pub fn best(&self) -> Option<WindowTrial> {
        self.trials.values().copied().reduce(|a, b| if b.rate_bps > a.rate_bps { b } else { a })
    }

    /// All trials so far, by window.
    pub fn trials(&self) -> impl Iterator<Item = &WindowTrial> {
        self.trials.values()
    }

    /// The intervals of the ladder that may contain the best window.
    fn brackets(&self) -> Vec<Bracket> {
        let rungs: Vec<WindowTrial> = self.trials.values().copied().collect();
        let last = rungs.len() - 1;
        let mut peaks: Vec<(f64, Bracket)> = Vec::new();
        for (i, rung) in rungs.iter().enumerate() {
            let (below, above) = (rungs[i.saturating_sub(1)], rungs[(i + 1).min(last)]);
            // Of two equal neighbours, the first is the peak.
            if (i == 0 || rung.rate_bps > below.rate_bps) && rung.rate_bps >= above.rate_bps {
                let (low, middle, high) = (below.window, rung.window, above.window);
                peaks.push((rung.rate_bps, Bracket::Peak { low, middle, high }));
            }
        }
        peaks.sort_by(|a, b| b.0.total_cmp(&a.0));
        peaks.truncate(MAX_PEAKS);
        let mut brackets: Vec<Bracket> = peaks.into_iter().map(|(_, bracket)| bracket).collect();
        // There may be several edges: far above the cliff a run can be without loss by chance.
        let tolerance = self.bounds.tolerance;
        let edges = rungs
            .windows(2)
            .filter(|pair| pair[0].lossless && pair[1].overflows(&pair[0], tolerance));
        brackets
            .extend(edges.map(|pair| Bracket::Edge { low: pair[0].window, high: pair[1].window }));
        brackets
    }

    /// Windows close to the best one.
    fn neighbours(&self) -> Vec<u64> {
        let Some(best) = self.best() else { return Vec::new() };
        let step = step(best.window, self.bounds.tolerance);
        let near = [1, 3].into_iter().flat_map(|n| {
            [best.window.saturating_sub(n * step), best.window.saturating_add(n * step)]
        });
        near.filter(|window| (self.bounds.min..=self.bounds.max).contains(window)).collect()
    }
}

/// Geometric rungs from the minimum to the maximum window, both included.
fn ladder(bounds: SearchBounds) -> Vec<u64> {
    let (min, max) = (bounds.min.max(1), bounds.max.max(bounds.min.max(1)));
    let doublings = libm::log2(max as f64 / min as f64);
    let steps = libm::ceil(doublings * RUNGS_PER_DOUBLING).max(1.0);
    let rung = |i: u64| min as f64 * libm::exp2(doublings * i as f64 / steps);
    (0..=steps as u64).map(|i| (libm::round(rung(i)) as u64).clamp(min, max)).collect()
}

/// Narrows every bracket as far as the trials allow, and returns the windows to try next.
fn narrow(
    brackets: &mut [Bracket],
    trials: &BTreeMap<u64, WindowTrial>,
    tolerance: f64,
) -> Vec<u64> {
    let mut requested = Vec::new();
    for bracket in brackets {
        while let Some(window) = bracket.next(tolerance) {
            let Some(trial) = trials.get(&window) else {
                requested.push(window);
                break;
            };
            let known = trials.get(&bracket.known()).unwrap_or(trial);
            *bracket = bracket.narrowed(trial, known, tolerance);
        }
    }
    requested
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(bounds: SearchBounds, rate: impl Fn(u64) -> f64, cliff: u64) -> (WindowTrial, usize) {
        let mut search = Search::new(bounds);
        while let Some(windows) = search.poll_windows() {
            for window in windows {
                let lossless = window <= cliff;
                search.handle_trial(WindowTrial { window, rate_bps: rate(window), lossless });
            }
        }
        (search.best().unwrap(), search.trials().count())
    }

    const BOUNDS: SearchBounds = SearchBounds { min: 20, max: 3750, tolerance: 0.005 };

    #[test]
    fn the_search_finds_any_smooth_peak_within_the_tolerance() {
        for peak in (20..3750).step_by(37) {
            let rate = |s: u64| 1e6 - (s as f64 - peak as f64).abs();
            let (best, trials) = search(BOUNDS, rate, 0);
            let error = best.window.abs_diff(peak);
            assert!(error <= step(peak, BOUNDS.tolerance), "{peak}: {}", best.window);
            // 17 rungs; about 11 golden-section cuts from a ratio of 2 down to 1 % (ln 100 / ln
            // 1.62 = 9.6) for the peak, and as many for another; 4 neighbours in each of two steps.
            assert!(trials < 50, "{trials}");
        }
    }

    #[test]
    fn the_search_finds_a_peak_at_a_cliff_below_a_high_plateau() {
        for cliff in (100..2000).step_by(13) {
            // Rising slowly up to the cliff, a dip after it, then 97 % of the peak.
            let rate = |s: u64| match s {
                s if s <= cliff => 30.0 + s as f64 / cliff as f64,
                s if s < 2 * cliff => 25.0,
                _ => 30.07,
            };
            let (best, _) = search(BOUNDS, rate, cliff);
            assert!(best.window <= cliff, "past the cliff at {cliff}: {}", best.window);
            assert!(
                cliff - best.window <= step(cliff, BOUNDS.tolerance),
                "{cliff}: {}",
                best.window
            );
        }
    }

    #[test]
    fn a_lossless_run_far_above_the_cliff_does_not_hide_it() {
        let cliff = 1310;
        let mut search = Search::new(BOUNDS);
        while let Some(windows) = search.poll_windows() {
            for window in windows {
                let rate_bps = match window {
                    w if w <= cliff => 37.0 * w as f64 / cliff as f64,
                    _ => 34.0 + window as f64 / 3000.0,
                };
                // 1949 is a rung.
                let lossless = window <= cliff || (1900..2000).contains(&window);
                search.handle_trial(WindowTrial { window, rate_bps, lossless });
            }
        }
        let best = search.best().unwrap();
        assert!(best.window <= cliff && best.window + step(cliff, 0.005) >= cliff, "{best:?}");
    }

    #[test]
    fn losses_during_warmup_do_not_hide_the_cliff() {
        // Above the cliff slow start overflows the buffer, and congestion avoidance recovers
        // slowly. Every window up to 2260 counts as without loss. Two higher peaks are above.
        let (cliff, rate) = (1310, |s: u64| match s {
            s if s <= 1310 => 37.0 - 0.008 * (1310 - s) as f64,
            s => 33.0 + s as f64 / 2000.0 + if (1900..2000).contains(&s) { 1.0 } else { 0.0 },
        });
        let mut search = Search::new(BOUNDS);
        while let Some(windows) = search.poll_windows() {
            for window in windows {
                let trial =
                    WindowTrial { window, rate_bps: rate(window), lossless: window <= 2260 };
                search.handle_trial(trial);
            }
        }
        let best = search.best().unwrap();
        assert!(best.window <= cliff && best.window + step(cliff, 0.005) >= cliff, "{best:?}");
    }

    #[test]
    fn a_plateau_yields_its_maximum_and_a_constant_the_min_window() {
        let (best, _) = search(BOUNDS, |s| s.min(625) as f64, 3750);
        // All windows from 625 on are equally good; one rung is within a factor of sqrt 2 of that.
        assert_eq!(best.rate_bps, 625.0);
        let (best, _) = search(BOUNDS, |_| 1.0, 3750);
        assert_eq!(best.window, BOUNDS.min);
    }

    #[test]
    fn bounds_with_a_single_window_take_one_trial() {
        let bounds = SearchBounds { min: 7, max: 7, tolerance: 0.01 };
        let (best, trials) = search(bounds, |s| s as f64, 0);
        assert_eq!((best.window, trials), (7, 1));
    }
}
