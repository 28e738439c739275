use std::collections::BTreeMap;

use sweetspot_scenario::{Engine, Outcome};

use super::case::{Case, Measured, Setting};
use crate::play::{goodput, play_all};
use crate::{StudyError, Workers};

/// One window of one setting: ns-2's mean over its seeds and ours over as many.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Everything but the window.
    pub setting: Setting,
    /// S, packets.
    pub window: u64,
    /// ns-2.
    pub theirs: Measured,
    /// This simulator.
    pub ours: Measured,
}

impl Comparison {
    /// By how much the goodputs differ, as a share of ns-2's, signed.
    pub fn deviation(&self) -> f64 {
        self.ours.goodput_mbps / self.theirs.goodput_mbps - 1.0
    }
}

/// Plays `cases` and puts the means over seeds side by side, by setting and window.
pub fn compare<E: Engine + Sync>(
    engine: &E,
    cases: &[Case],
    workers: Workers,
) -> Result<Vec<Comparison>, StudyError> {
    let scenarios = cases.iter().map(|case| case.setting.scenario(case.window, case.seed));
    let scenarios = scenarios.collect::<Result<Vec<_>, _>>()?;
    let outcomes = play_all(engine, &scenarios, workers)?;
    let mut groups: BTreeMap<(&Setting, u64), Vec<(Measured, Measured)>> = BTreeMap::new();
    for (case, outcome) in cases.iter().zip(&outcomes) {
        let runs = groups.entry((&case.setting, case.window)).or_default();
        runs.push((case.truth, measured(outcome)));
    }
    let comparison = |((setting, window), runs): ((&Setting, u64), Vec<(Measured, Measured)>)| {
        let (theirs, ours): (Vec<Measured>, Vec<Measured>) = runs.into_iter().unzip();
        Comparison { setting: setting.clone(), window, theirs: mean(&theirs), ours: mean(&ours) }
    };
    Ok(groups.into_iter().map(comparison).collect())
}

fn measured(outcome: &Outcome) -> Measured {
    Measured {
        goodput_mbps: goodput(outcome) / 1e6,
        loss: outcome.bottleneck.loss_rate,
        queue_packets: outcome.bottleneck.queue_mean_packets,
        rtt_ms: outcome.transfers.first().map_or(0.0, |transfer| transfer.rtt_mean_s * 1e3),
        utilisation_before: outcome.bottleneck.utilisation_before,
    }
}

fn mean(runs: &[Measured]) -> Measured {
    let mean = |of: fn(&Measured) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    Measured {
        goodput_mbps: mean(|m| m.goodput_mbps),
        loss: mean(|m| m.loss),
        queue_packets: mean(|m| m.queue_packets),
        rtt_ms: mean(|m| m.rtt_ms),
        utilisation_before: mean(|m| m.utilisation_before),
    }
}

/// Median and largest absolute deviation of goodput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// How many comparisons.
    pub count: usize,
    /// The middle one.
    pub median: f64,
    /// The worst one.
    pub worst: f64,
}

/// The spread of those `comparisons` that `belongs` picks; `None` if it picks none.
pub fn spread(comparisons: &[Comparison], belongs: impl Fn(&Comparison) -> bool) -> Option<Spread> {
    let picked = comparisons.iter().filter(|comparison| belongs(comparison));
    let mut deviations: Vec<f64> = picked.map(|comparison| comparison.deviation().abs()).collect();
    deviations.sort_by(f64::total_cmp);
    let count = deviations.len();
    let worst = *deviations.last()?;
    let median = (deviations[(count - 1) / 2] + deviations[count / 2]) / 2.0;
    Some(Spread { count, median, worst })
}

/// The maximum over the windows that both simulators played, and where it lies.
#[derive(Debug, Clone, PartialEq)]
pub struct Maximum {
    /// Everything but the window.
    pub setting: Setting,
    /// ns-2's, Mbit/s, and its window.
    pub theirs: (f64, u64),
    /// EngineValue.
    pub ours: (f64, u64),
}

/// One maximum per setting.
pub fn maxima(comparisons: &[Comparison]) -> Vec<Maximum> {
    let mut settings: BTreeMap<&Setting, Vec<&Comparison>> = BTreeMap::new();
    for comparison in comparisons {
        settings.entry(&comparison.setting).or_default().push(comparison);
    }
    let best = |runs: &[&Comparison], of: fn(&Comparison) -> f64| {
        let best = runs.iter().copied().reduce(|a, b| if of(b) > of(a) { b } else { a });
        best.map_or((0.0, 0), |best| (of(best), best.window))
    };
    let maximum = |(setting, runs): (&Setting, Vec<&Comparison>)| Maximum {
        setting: setting.clone(),
        theirs: best(&runs, |c| c.theirs.goodput_mbps),
        ours: best(&runs, |c| c.ours.goodput_mbps),
    };
    settings.into_iter().map(maximum).collect()
}
