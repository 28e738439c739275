//! The performance of short and long transfers on a link with a given buffer.

use serde::{Deserialize, Serialize};
use sweetspot_scenario::{Engine, Scenario};
use sweetspot_units::Volume;

use super::run::{Class, Run, run};
use crate::cached_engine::{ResultStore, RunKey};
use crate::{StudyError, Workers};

/// The engine, the store of finished runs, the workers, and the progress report.
#[derive(Clone, Copy)]
pub struct Runner<'a> {
    /// The engine.
    pub engine: &'a (dyn Engine + Sync),
    /// The store of finished runs.
    pub store: &'a dyn ResultStore,
    /// The workers that share the runs.
    pub workers: Workers,
    /// Called after each run with the number of finished runs and the total.
    pub watch: &'a (dyn Fn(usize, usize) + Sync),
}

/// The performance of the link and of the finished flows with one buffer, as means over the seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BufferMeasured {
    /// The buffer, packets.
    pub buffer: u64,
    /// Loss: packets dropped, divided by packets that arrived.
    pub loss: f64,
    /// Mean queueing delay, seconds.
    pub delay_s: f64,
    /// Used share of the capacity.
    pub utilisation: f64,
    /// Flows of about thirty packets (section VII-C).
    pub short: MedianThroughput,
    /// Flows with more than five congestion events (section VII-C).
    pub long: MedianThroughput,
    /// Flows of 45 to 50 kB (section III-B).
    pub small: MedianThroughput,
    /// Flows of more than 1000 kB, with any number of losses (section III-B).
    pub large: MedianThroughput,
    /// Flows within a tenth of the median size.
    pub median_size: MedianThroughput,
    /// Flows of more than eight times the mean size.
    pub bulk: MedianThroughput,
    /// Each seed's run.
    pub runs: Vec<Run>,
}

/// Median per-flow throughput.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MedianThroughput {
    /// Mean of the seeds' medians, weighted by the number of flows, bit/s; 0 if there are no flows.
    pub median_bps: f64,
    /// Standard error of the mean, bit/s; 0 with a single seed.
    pub error_bps: f64,
    /// Number of flows.
    pub flows: u64,
}

/// Runs `scenario` with each of `buffers` and with `seeds` seeds, beginning with the scenario's
/// own.
///
/// # Errors
/// If the engine cannot run it.
pub fn measure(
    runner: &Runner<'_>,
    scenario: &Scenario,
    buffers: &[u64],
    seeds: u64,
) -> Result<Vec<BufferMeasured>, StudyError> {
    let seeds = seeds.max(1);
    let runs: Vec<Scenario> = buffers
        .iter()
        .flat_map(|buffer| (0..seeds).map(move |i| (*buffer, scenario.seed + i)))
        .map(|(buffer, seed)| with_buffer(scenario, buffer, seed))
        .collect();
    let finished = run_all(runner, &runs)?;
    let per_buffer = buffers.iter().zip(finished.chunks(seeds as usize));
    Ok(per_buffer.map(|(buffer, runs)| BufferMeasured::of(*buffer, runs.to_vec())).collect())
}

/// Runs `scenarios`, and returns the results in their order.
pub fn run_all(runner: &Runner<'_>, scenarios: &[Scenario]) -> Result<Vec<Run>, StudyError> {
    let done = std::sync::atomic::AtomicUsize::new(0);
    let finished = runner.workers.map(scenarios, |scenario| {
        let run = kept_or_run(runner, scenario);
        let completed = 1 + done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        (runner.watch)(completed, scenarios.len());
        run
    });
    finished.into_iter().collect()
}

/// Distinguishes a run's summary from an outcome in a store.
const SUMMARY: &str = "router";

fn kept_or_run(runner: &Runner<'_>, scenario: &Scenario) -> Result<Run, StudyError> {
    let name = format!("{}, {SUMMARY}", runner.engine.name());
    let key = RunKey::of(&name, scenario);
    let kept = runner.store.summary(&key);
    if let Some(run) = kept.and_then(|json| serde_json::from_value(json).ok()) {
        return Ok(run);
    }
    let run = run(runner.engine, scenario)?;
    if let Ok(json) = serde_json::to_value(&run) {
        runner.store.keep_summary(&key, &json);
    }
    Ok(run)
}

fn with_buffer(scenario: &Scenario, buffer: u64, seed: u64) -> Scenario {
    let mut scenario = Scenario { seed, ..scenario.clone() };
    let narrow = scenario.path.bottleneck();
    scenario.path.hops[narrow].buffer = Volume::Packets(buffer);
    scenario
}

impl BufferMeasured {
    /// The means of `runs` with `buffer`.
    pub fn of(buffer: u64, runs: Vec<Run>) -> BufferMeasured {
        let mean = |of: &dyn Fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let throughput = |of: fn(&Run) -> &Class| MedianThroughput::of(runs.iter().map(of));
        BufferMeasured {
            buffer,
            loss: mean(&|run| run.loss),
            delay_s: mean(&|run| run.delay_s),
            utilisation: mean(&|run| run.utilisation),
            short: throughput(|run| &run.short),
            long: throughput(|run| &run.long),
            small: throughput(|run| &run.small),
            large: throughput(|run| &run.large),
            median_size: throughput(|run| &run.median_size),
            bulk: throughput(|run| &run.bulk),
            runs,
        }
    }

    /// Mean number of simultaneously active flows, by Little's law from the finished flows.
    pub fn active_flows(&self) -> f64 {
        self.runs.iter().map(|run| run.active_flows).sum::<f64>() / self.runs.len() as f64
    }
}

impl MedianThroughput {
    fn of<'a>(classes: impl Iterator<Item = &'a Class>) -> MedianThroughput {
        let some: Vec<&Class> = classes.filter(|class| class.flows > 0).collect();
        let flows: u64 = some.iter().map(|class| class.flows).sum();
        if flows == 0 {
            return MedianThroughput::default();
        }
        let weight = |class: &Class| class.flows as f64 / flows as f64;
        let median_bps = some.iter().map(|class| weight(class) * class.median_bps).sum();
        let squares: f64 = some
            .iter()
            .map(|class| {
                let off = weight(class) * (class.median_bps - median_bps);
                off * off
            })
            .sum();
        // The standard error of a ratio estimator (Cochran, "Sampling Techniques", 1977, section
        // 6.4).
        let seeds = some.len() as f64;
        let error_bps =
            if some.len() < 2 { 0.0 } else { libm::sqrt(squares * seeds / (seeds - 1.0)) };
        MedianThroughput { median_bps, error_bps, flows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(flows: u64, median_bps: f64) -> Class {
        Class { flows, median_bps, ..Class::default() }
    }

    #[test]
    fn equal_flow_counts_give_the_mean_and_its_standard_error() {
        // Values 1, 2, 3 with mean 2 have squared deviations 1 + 0 + 1; 2 / 2 / 3 = 1/3.
        let classes = [class(5, 1.0), class(5, 2.0), class(5, 3.0)];
        let found = MedianThroughput::of(classes.iter());
        assert!((found.median_bps - 2.0).abs() < 1e-12);
        assert!((found.error_bps - libm::sqrt(1.0 / 3.0)).abs() < 1e-12);
        assert_eq!(found.flows, 15);
    }

    #[test]
    fn seeds_are_weighted_by_their_number_of_flows() {
        let classes = [class(30, 10.0), class(0, 0.0), class(10, 50.0)];
        // (30 x 10 + 10 x 50) / 40 = 20.
        assert!((MedianThroughput::of(classes.iter()).median_bps - 20.0).abs() < 1e-12);
        assert_eq!(MedianThroughput::of([class(0, 0.0)].iter()), MedianThroughput::default());
        assert_eq!(MedianThroughput::of([class(7, 3.0)].iter()).error_bps, 0.0);
    }
}
