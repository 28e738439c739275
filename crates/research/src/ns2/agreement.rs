use std::collections::BTreeMap;

use sweetspot_scenario::{Engine, Outcome};
use sweetspot_statistics::Sorted;

use super::case::{Ns2Case, Ns2Measured, Ns2Setting};
use sweetspot_experiment::run::{goodput, run_all};
use sweetspot_experiment::{StudyError, Workers};

/// One window in one setting: the means over seeds in ns-2 and in this simulator, with the same
/// number of seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Ns2Comparison {
    /// All parameters except the window.
    pub setting: Ns2Setting,
    /// The window S, packets.
    pub window: u64,
    /// ns-2's result.
    pub theirs: Ns2Measured,
    /// This simulator's result.
    pub ours: Ns2Measured,
}

impl Ns2Comparison {
    /// Relative difference of the goodputs, signed, as a fraction of ns-2's goodput.
    pub fn deviation(&self) -> f64 {
        self.ours.goodput_mbps / self.theirs.goodput_mbps - 1.0
    }
}

/// Runs `cases` and compares the means over seeds, by setting and window.
pub fn compare<E: Engine + Sync>(
    engine: &E,
    cases: &[Ns2Case],
    workers: Workers,
) -> Result<Vec<Ns2Comparison>, StudyError> {
    let scenarios = cases.iter().map(|case| case.setting.scenario(case.window, case.seed));
    let scenarios = scenarios.collect::<Result<Vec<_>, _>>()?;
    let outcomes = run_all(engine, &scenarios, workers)?;
    let mut groups: BTreeMap<(&Ns2Setting, u64), Vec<(Ns2Measured, Ns2Measured)>> = BTreeMap::new();
    for (case, outcome) in cases.iter().zip(&outcomes) {
        let runs = groups.entry((&case.setting, case.window)).or_default();
        runs.push((case.truth, measured(outcome)));
    }
    let comparison =
        |((setting, window), runs): ((&Ns2Setting, u64), Vec<(Ns2Measured, Ns2Measured)>)| {
            let (theirs, ours): (Vec<Ns2Measured>, Vec<Ns2Measured>) = runs.into_iter().unzip();
            Ns2Comparison {
                setting: setting.clone(),
                window,
                theirs: mean(&theirs),
                ours: mean(&ours),
            }
        };
    Ok(groups.into_iter().map(comparison).collect())
}

fn measured(outcome: &Outcome) -> Ns2Measured {
    Ns2Measured {
        goodput_mbps: goodput(outcome) / 1e6,
        loss: outcome.bottleneck.loss_rate,
        queue_packets: outcome.bottleneck.queue_mean_packets,
        rtt_ms: outcome.transfers.first().map_or(0.0, |transfer| transfer.rtt_mean_s * 1e3),
        utilisation_before: outcome.bottleneck.utilisation_before,
    }
}

fn mean(runs: &[Ns2Measured]) -> Ns2Measured {
    let mean = |of: fn(&Ns2Measured) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    Ns2Measured {
        goodput_mbps: mean(|m| m.goodput_mbps),
        loss: mean(|m| m.loss),
        queue_packets: mean(|m| m.queue_packets),
        rtt_ms: mean(|m| m.rtt_ms),
        utilisation_before: mean(|m| m.utilisation_before),
    }
}

/// Median and maximum absolute deviation of goodput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviationSpread {
    /// Number of comparisons.
    pub count: usize,
    /// The median deviation.
    pub median: f64,
    /// The maximum deviation.
    pub worst: f64,
}

/// The spread over the `comparisons` for which `belongs` is true; `None` if there are none.
pub fn spread(
    comparisons: &[Ns2Comparison],
    belongs: impl Fn(&Ns2Comparison) -> bool,
) -> Option<DeviationSpread> {
    let picked = comparisons.iter().filter(|comparison| belongs(comparison));
    let deviations: Sorted = picked.map(|comparison| comparison.deviation().abs()).collect();
    let [median, worst] = deviations.quantiles([0.5, 1.0])?;
    Some(DeviationSpread { count: deviations.len(), median, worst })
}

/// The maximum over the windows that both simulators ran, and its window.
#[derive(Debug, Clone, PartialEq)]
pub struct Ns2Maximum {
    /// All parameters except the window.
    pub setting: Ns2Setting,
    /// ns-2's maximum, Mbit/s, and its window.
    pub theirs: (f64, u64),
    /// This simulator's maximum, Mbit/s, and its window.
    pub ours: (f64, u64),
}

/// The maximum for each setting.
pub fn maxima(comparisons: &[Ns2Comparison]) -> Vec<Ns2Maximum> {
    let mut settings: BTreeMap<&Ns2Setting, Vec<&Ns2Comparison>> = BTreeMap::new();
    for comparison in comparisons {
        settings.entry(&comparison.setting).or_default().push(comparison);
    }
    let best = |runs: &[&Ns2Comparison], of: fn(&Ns2Comparison) -> f64| {
        let best = runs.iter().copied().reduce(|a, b| if of(b) > of(a) { b } else { a });
        best.map_or((0.0, 0), |best| (of(best), best.window))
    };
    let maximum = |(setting, runs): (&Ns2Setting, Vec<&Ns2Comparison>)| Ns2Maximum {
        setting: setting.clone(),
        theirs: best(&runs, |c| c.theirs.goodput_mbps),
        ours: best(&runs, |c| c.ours.goodput_mbps),
    };
    settings.into_iter().map(maximum).collect()
}
