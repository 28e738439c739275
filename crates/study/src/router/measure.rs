use std::collections::BTreeMap;

use sweetspot_scenario::{Engine, FinishedFlow, Outcome, Recorder, Sample, Scenario};
use sweetspot_theory::reno::classify::{self, FlowModel};
use sweetspot_units::{Duration, Time, Volume};

use crate::{StudyError, Workers};

/// Measurements of the link and of the finished flows with one buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferMeasured {
    /// The buffer, packets.
    pub buffer: u64,
    /// Packets dropped over packets that arrived, mean over the seeds.
    pub loss: f64,
    /// Mean queueing delay, seconds.
    pub delay_s: f64,
    /// Share of the capacity that was used.
    pub utilisation: f64,
    /// Flows of about thirty packets (section VII-C).
    pub short: MedianThroughput,
    /// Flows with more than five congestion events (section VII-C).
    pub long: MedianThroughput,
    /// Flows of more than 1000 kB (section III-B).
    pub large: MedianThroughput,
    /// Figures 9 and 10: by the logarithm of the size, the mean throughput and how many.
    pub by_size: BTreeMap<u32, SizeBin>,
}

/// Median per-flow throughput.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MedianThroughput {
    /// Median over the flows of all seeds, bit/s; 0 where there is none.
    pub median_bps: f64,
    /// Standard error of the median, from the seeds' own medians, bit/s.
    pub error_bps: f64,
    /// Number of flows.
    pub flows: usize,
}

/// Flows of about the same size.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SizeBin {
    /// How many.
    pub flows: usize,
    /// Their mean size, packets.
    pub packets: f64,
    /// Their mean throughput, bit/s.
    pub mean_bps: f64,
}

/// Section VII-C: s = 30 packets; a few sizes around it, so that there are enough of them.
pub const SHORT_FLOW_PACKETS: core::ops::RangeInclusive<u64> = 28..=32;

/// Section VII-C, "more than five congestion events"; section IV draws the line at five.
const MIN_LONG_EVENTS: usize = 6;

/// Section III-B: "large flows ... send more than 1000KB".
const LARGE_BITS: f64 = 8e6;

/// Bins per factor of ten in Figures 9 and 10, whose width grows exponentially with the size.
const BINS_PER_DECADE: f64 = 5.0;

#[derive(Debug, Default)]
struct Flows(Vec<FinishedFlow>);

impl Recorder for Flows {
    fn interval(&self) -> Option<Duration> {
        None
    }
    fn record(&mut self, _sample: &Sample) {}
    fn wants_flows(&self) -> bool {
        true
    }
    fn record_flow(&mut self, flow: &FinishedFlow) {
        self.0.push(flow.clone());
    }
}

struct FlowsOfRun {
    outcome: Outcome,
    short: Vec<f64>,
    long: Vec<f64>,
    large: Vec<f64>,
    /// Size in packets and throughput of every flow.
    all: Vec<(u64, f64)>,
}

/// Plays `scenario` with each of `buffers` under `seeds` seeds; calls `watch` after every run with
/// the number of finished runs and of all.
///
/// # Errors
/// If the engine cannot play it.
pub fn measure<E: Engine + Sync + ?Sized>(
    engine: &E,
    scenario: &Scenario,
    buffers: &[u64],
    seeds: u64,
    workers: Workers,
    watch: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<BufferMeasured>, StudyError> {
    let seeds = seeds.max(1);
    let runs: Vec<(u64, Scenario)> = buffers
        .iter()
        .flat_map(|buffer| (0..seeds).map(move |i| (*buffer, scenario.seed + i)))
        .map(|(buffer, seed)| (buffer, with_buffer(scenario, buffer, seed)))
        .collect();
    let done = std::sync::atomic::AtomicUsize::new(0);
    let played = workers.map(&runs, |(_, scenario)| {
        let run = play(engine, scenario);
        watch(1 + done.fetch_add(1, std::sync::atomic::Ordering::Relaxed), runs.len());
        run
    });
    let played = played.into_iter().collect::<Result<Vec<FlowsOfRun>, StudyError>>()?;
    let per_buffer = buffers.iter().zip(played.chunks(seeds as usize));
    Ok(per_buffer.map(|(buffer, runs)| BufferMeasured::of(*buffer, runs)).collect())
}

fn with_buffer(scenario: &Scenario, buffer: u64, seed: u64) -> Scenario {
    let mut scenario = Scenario { seed, ..scenario.clone() };
    let narrow = scenario.path.bottleneck();
    scenario.path.hops[narrow].buffer = Volume::Packets(buffer);
    scenario
}

fn play<E: Engine + ?Sized>(engine: &E, scenario: &Scenario) -> Result<FlowsOfRun, StudyError> {
    let mut flows = Flows::default();
    let outcome = engine.run(scenario, &mut flows)?;
    let delay = outcome.bottleneck.queue_delay_mean_s;
    let payload = scenario.path.packet.saturating_sub(scenario.cross[0].tcp.header).as_f64() * 8.0;
    let mut run = FlowsOfRun {
        outcome,
        short: Vec::new(),
        long: Vec::new(),
        large: Vec::new(),
        all: Vec::new(),
    };
    for flow in flows.0.iter().filter(|flow| flow.duration_s > 0.0) {
        let rate = flow.packets as f64 * payload / flow.duration_s;
        run.all.push((flow.packets, rate));
        if SHORT_FLOW_PACKETS.contains(&flow.packets) {
            run.short.push(rate);
        }
        if flow.packets as f64 * payload > LARGE_BITS {
            run.large.push(rate);
        }
        if events(flow, delay)? >= MIN_LONG_EVENTS {
            run.long.push(rate);
        }
    }
    Ok(run)
}

/// Congestion events of a flow whose packets waited `delay` seconds on average.
fn events(flow: &FinishedFlow, delay: f64) -> Result<usize, StudyError> {
    if flow.losses_s.len() < MIN_LONG_EVENTS {
        // There are no more events than losses.
        return Ok(flow.losses_s.len());
    }
    let time = |s: &f64| Time::ZERO + Duration::from_secs_f64(*s);
    let losses: Vec<Time> = flow.losses_s.iter().map(time).collect();
    let rtt = Duration::from_secs_f64(flow.propagation_s + delay);
    let events = classify::congestion_events(&losses, rtt)?;
    debug_assert!(events < MIN_LONG_EVENTS || classify::model(events) == FlowModel::L);
    Ok(events)
}

impl BufferMeasured {
    fn of(buffer: u64, runs: &[FlowsOfRun]) -> BufferMeasured {
        let mean =
            |of: &dyn Fn(&FlowsOfRun) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        BufferMeasured {
            buffer,
            loss: mean(&|run| run.outcome.bottleneck.loss_rate),
            delay_s: mean(&|run| run.outcome.bottleneck.queue_delay_mean_s),
            utilisation: mean(&|run| run.outcome.bottleneck.utilisation),
            short: MedianThroughput::of(runs.iter().map(|run| run.short.as_slice())),
            long: MedianThroughput::of(runs.iter().map(|run| run.long.as_slice())),
            large: MedianThroughput::of(runs.iter().map(|run| run.large.as_slice())),
            by_size: bins(runs.iter().flat_map(|run| run.all.iter().copied())),
        }
    }
}

impl MedianThroughput {
    fn of<'a>(runs: impl Iterator<Item = &'a [f64]> + Clone) -> MedianThroughput {
        let mut all: Vec<f64> = runs.clone().flatten().copied().collect();
        let medians: Vec<f64> =
            runs.filter(|run| !run.is_empty()).map(|run| median(&mut run.to_vec())).collect();
        MedianThroughput {
            flows: all.len(),
            median_bps: median(&mut all),
            error_bps: standard_error(&medians),
        }
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n => (values[(n - 1) / 2] + values[n / 2]) / 2.0,
    }
}

/// Standard error of the mean of `values`; 0 for fewer than two.
fn standard_error(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    libm::sqrt(squares / (n - 1.0) / n)
}

fn bins(flows: impl Iterator<Item = (u64, f64)>) -> BTreeMap<u32, SizeBin> {
    let mut bins: BTreeMap<u32, SizeBin> = BTreeMap::new();
    for (packets, rate) in flows {
        let bin = libm::floor(libm::log10(packets.max(1) as f64) * BINS_PER_DECADE) as u32;
        let bin = bins.entry(bin).or_default();
        bin.flows += 1;
        bin.packets += packets as f64;
        bin.mean_bps += rate;
    }
    for bin in bins.values_mut() {
        bin.packets /= bin.flows as f64;
        bin.mean_bps /= bin.flows as f64;
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&mut []), 0.0);
    }

    #[test]
    fn the_standard_error_by_hand() {
        // Squares about the mean 2: 1 + 0 + 1 = 2; 2 / 2 / 3 = 1/3.
        assert!((standard_error(&[1.0, 2.0, 3.0]) - libm::sqrt(1.0 / 3.0)).abs() < 1e-12);
        assert_eq!(standard_error(&[1.0]), 0.0);
    }

    #[test]
    fn losses_two_round_trips_apart_are_events() {
        // 60 ms + 40 ms: 200 ms apart.
        let losses_s = vec![1.0, 1.199, 1.4, 2.0, 3.0, 4.0, 5.0];
        let flow = FinishedFlow {
            entry: 0,
            packets: 100,
            duration_s: 9.0,
            propagation_s: 0.060,
            losses_s,
        };
        assert_eq!(events(&flow, 0.040).unwrap(), 6);
        assert_eq!(events(&flow, 0.050).unwrap(), 5);
    }

    #[test]
    fn bins_grow_exponentially() {
        let found = bins([(1, 2.0), (10, 4.0), (11, 6.0), (100, 8.0)].into_iter());
        let counts: Vec<(u32, usize)> = found.iter().map(|(bin, of)| (*bin, of.flows)).collect();
        assert_eq!(counts, [(0, 1), (5, 2), (10, 1)]);
        assert_eq!((found[&5].packets, found[&5].mean_bps), (10.5, 5.0));
    }
}
