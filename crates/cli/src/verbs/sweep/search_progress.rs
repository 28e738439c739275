//! The progress of a search: the windows that its runs have tried.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sweetspot_experiment::SearchBounds;
use sweetspot_scenario::{Engine, EngineResult, Recorder, Scenario};
use sweetspot_sizing::Sizing;
use sweetspot_statistics::mean;
use sweetspot_units::Volume;

/// An engine that notes the goodput of the first transfer with each window.
pub struct SearchEngine<'a> {
    engine: &'a (dyn Engine + Sync),
    bounds: SearchBounds,
    done: AtomicUsize,
    /// The goodput in bit/s of each run, by its window in packets.
    rates: Mutex<BTreeMap<u64, Vec<f64>>>,
}

impl<'a> SearchEngine<'a> {
    /// Notes the runs of `engine` during a search within `bounds`.
    pub fn new(engine: &'a (dyn Engine + Sync), bounds: SearchBounds) -> SearchEngine<'a> {
        SearchEngine { engine, bounds, done: AtomicUsize::new(0), rates: Mutex::default() }
    }

    /// Number of finished runs.
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// The progress in words: the number of runs, and the range that contains the best window.
    pub fn in_words(&self) -> String {
        let rates = self.rates.lock().map(|rates| rates.clone()).unwrap_or_default();
        let found = range(&rates, self.bounds).map_or(String::new(), |[below, best, above]| {
            format!(", best window so far {best} packets, between {below} and {above}")
        });
        format!("{} runs{found}", self.done())
    }
}

/// The window with the highest mean rate, between the next smaller and the next larger one, or the bounds.
fn range(rates: &BTreeMap<u64, Vec<f64>>, bounds: SearchBounds) -> Option<[u64; 3]> {
    let means = || rates.iter().filter_map(|(window, rates)| Some((*window, mean(rates)?)));
    let (best, _) = means().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let below = rates.range(..best).next_back().map_or(bounds.min, |(window, _)| *window);
    let above = rates.range(best + 1..).next().map_or(bounds.max, |(window, _)| *window);
    Some([below, best, above])
}

impl Engine for SearchEngine<'_> {
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn run(&self, scenario: &Scenario, recorder: &mut dyn Recorder) -> EngineResult {
        let outcome = self.engine.run(scenario, recorder)?;
        self.done.fetch_add(1, Ordering::Relaxed);
        let window = match scenario.transfers.first().map(|transfer| &transfer.sizing) {
            Some(Sizing::Fixed(Volume::Packets(window))) => Some(*window),
            _ => None,
        };
        let noted = window.zip(outcome.transfers.first()).zip(self.rates.lock().ok());
        if let Some(((window, transfer), mut rates)) = noted {
            rates.entry(window).or_default().push(transfer.goodput_bps);
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_that_remains_is_around_the_best_window() {
        let range = |rates: &[(u64, &[f64])]| {
            let bounds = SearchBounds { min: 10, max: 90, tolerance: 0.01 };
            range(&rates.iter().map(|(window, rates)| (*window, rates.to_vec())).collect(), bounds)
        };
        assert_eq!(range(&[]), None);
        assert_eq!(range(&[(20, &[1.0])]), Some([10, 20, 90]));
        // The means are 2, 5 and 4.
        let tried: [(u64, &[f64]); 3] = [(20, &[2.0]), (40, &[4.0, 6.0]), (80, &[8.0, 0.0])];
        assert_eq!(range(&tried), Some([20, 40, 80]));
        assert_eq!(range(&tried[..2]), Some([20, 40, 90]));
    }
}
