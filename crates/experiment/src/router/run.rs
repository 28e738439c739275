//! The summary of one run, in a form that a store can keep.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sweetspot_scenario::{Engine, FinishedFlow, Recorder, Sample, Scenario, TrafficKind};
use sweetspot_statistics::Sorted;
use sweetspot_theory::reno::classify;
use sweetspot_units::{Duration, Time};

use crate::StudyError;

/// The performance of the link and of the finished flows in one run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// Loss: packets dropped, divided by packets that arrived.
    pub loss: f64,
    /// Mean queueing delay, seconds.
    pub delay_s: f64,
    /// Maximum time that a packet waited for the packets before it, seconds.
    pub delay_max_s: f64,
    /// Used share of the capacity.
    pub utilisation: f64,
    /// Mean number of simultaneously active flows, by Little's law from the finished flows.
    pub active_flows: f64,
    /// Flows of about thirty packets (section VII-C).
    pub short: Class,
    /// Flows with more than five congestion events (section VII-C).
    pub long: Class,
    /// Flows of 45 to 50 kB (section III-B).
    pub small: Class,
    /// Flows of more than 1000 kB, with any number of losses (section III-B).
    pub large: Class,
    /// Flows within a tenth of the median size.
    pub median_size: Class,
    /// Flows of more than eight times the mean size.
    pub bulk: Class,
    /// Flows binned by the logarithm of their size, for Figures 9 and 10.
    pub by_size: BTreeMap<u32, SizeBin>,
    /// Used share of the capacity in each interval, if a transfer exists to sample with.
    pub loads: Vec<f64>,
}

/// The throughputs of a class of flows in one run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Class {
    /// Number of flows.
    pub flows: u64,
    /// Median throughput, bit/s; 0 if there are no flows.
    pub median_bps: f64,
    /// Mean throughput, bit/s.
    pub mean_bps: f64,
    /// Coefficient of variation: standard deviation divided by the mean.
    pub variation: f64,
    /// The 5th, 10th, ... 95th percentiles of the throughput, bit/s; empty if there are no flows.
    pub quantiles_bps: Vec<f64>,
}

/// Flows of about the same size.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct SizeBin {
    /// Number of flows.
    pub flows: u64,
    /// Mean size, packets.
    pub packets: f64,
    /// Mean throughput, bit/s.
    pub mean_bps: f64,
}

/// Section VII-C: s = 30 packets. Includes neighbouring sizes, so that there are enough flows.
const SHORT: core::ops::RangeInclusive<u64> = 28..=32;

/// Section VII-C, "more than five congestion events"; section IV uses five as the threshold.
const LONG_EVENTS: usize = 6;

/// Section III-B: "small flows ... send about 45-50KB", "large flows ... more than 1000KB".
const SMALL_BYTES: core::ops::RangeInclusive<f64> = 45e3..=50e3;
const LARGE_BYTES: f64 = 1e6;

/// Minimum size of a bulk transfer, in mean sizes: 640 kB with the paper's mean of 80 kB.
const BULK: f64 = 8.0;

/// Bins per factor of ten in Figures 9 and 10; their width grows exponentially with the size.
const BINS_PER_DECADE: f64 = 5.0;

/// The finest of Figure 4's averaging time scales.
pub const INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
struct Flows {
    finished: Vec<FinishedFlow>,
    /// Time and load of every interval; `None` if not requested.
    loads: Option<Vec<(f64, f64)>>,
}

impl Recorder for Flows {
    fn interval(&self) -> Option<Duration> {
        self.loads.as_ref().map(|_| INTERVAL)
    }
    fn record(&mut self, sample: &Sample) {
        if let (Some(loads), Some(used)) = (&mut self.loads, sample.utilisation) {
            loads.push((sample.at_s, used));
        }
    }
    fn wants_flows(&self) -> bool {
        true
    }
    fn record_flow(&mut self, flow: &FinishedFlow) {
        self.finished.push(flow.clone());
    }
}

/// Runs `scenario` once.
pub fn run(engine: &(dyn Engine + Sync), scenario: &Scenario) -> Result<Run, StudyError> {
    let loads = (!scenario.transfers.is_empty()).then(Vec::new);
    let mut flows = Flows { finished: Vec::new(), loads };
    let outcome = engine.run(scenario, &mut flows)?.bottleneck;
    let payload = scenario.path.packet.saturating_sub(scenario.cross[0].tcp.header).as_f64();
    let packet_time = scenario.path.packet.as_f64() * 8.0 / scenario.path.narrow().rate.as_f64();
    let seconds = scenario.duration.as_secs_f64();
    let (median, mean) = sizes(scenario);
    let mut classes: [Vec<f64>; 6] = Default::default();
    let mut all = Vec::new();
    for flow in flows.finished.iter().filter(|flow| flow.duration_s > 0.0) {
        let bytes = flow.packets as f64 * payload;
        let rate = bytes * 8.0 / flow.duration_s;
        all.push((flow.packets, rate));
        let belongs = [
            SHORT.contains(&flow.packets),
            events(flow, outcome.queue_delay_mean_s)? >= LONG_EVENTS,
            SMALL_BYTES.contains(&bytes),
            bytes > LARGE_BYTES,
            (0.9 * median..=1.1 * median).contains(&bytes),
            bytes > BULK * mean,
        ];
        for (class, _) in classes.iter_mut().zip(belongs).filter(|(_, belongs)| *belongs) {
            class.push(rate);
        }
    }
    let busy: f64 = flows.finished.iter().map(|flow| flow.duration_s).sum();
    let warmup = scenario.warmup.as_secs_f64();
    let loads = flows.loads.unwrap_or_default();
    let [short, long, small, large, median_size, bulk] = classes.map(|rates| Class::of(&rates));
    Ok(Run {
        seed: scenario.seed,
        loss: outcome.loss_rate,
        delay_s: outcome.queue_delay_mean_s,
        delay_max_s: outcome.queue_max_packets as f64 * packet_time,
        utilisation: outcome.utilisation,
        active_flows: busy / seconds,
        short,
        long,
        small,
        large,
        median_size,
        bulk,
        by_size: bins(all.into_iter()),
        loads: loads.into_iter().filter(|(at, _)| *at > warmup).map(|(_, used)| used).collect(),
    })
}

/// Median and mean size of the transfers, bytes. A Pareto distribution's median is its minimum times
/// 2^(1/alpha), and its minimum is the mean times (alpha - 1) / alpha.
fn sizes(scenario: &Scenario) -> (f64, f64) {
    let (mean, alpha) = match scenario.cross[0].kind {
        TrafficKind::ClosedLoop { size_mean, size_shape, .. }
        | TrafficKind::Arrivals { size_mean, size_shape, .. } => (size_mean.as_f64(), size_shape),
        _ => return (0.0, f64::INFINITY),
    };
    (mean * (alpha - 1.0) / alpha * libm::exp2(1.0 / alpha), mean)
}

/// Number of congestion events of a flow with a mean queueing delay of `delay` seconds.
fn events(flow: &FinishedFlow, delay: f64) -> Result<usize, StudyError> {
    if flow.losses_s.len() < LONG_EVENTS {
        // There are at most as many events as losses.
        return Ok(flow.losses_s.len());
    }
    let time = |s: &f64| Time::ZERO + Duration::from_secs_f64(*s);
    let losses: Vec<Time> = flow.losses_s.iter().map(time).collect();
    let rtt = Duration::from_secs_f64(flow.propagation_s + delay);
    Ok(classify::congestion_events(&losses, rtt)?)
}

impl Class {
    fn of(rates: &[f64]) -> Class {
        if rates.is_empty() {
            return Class::default();
        }
        let sorted: Sorted = rates.iter().copied().collect();
        let n = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let variance = sorted.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / n;
        let at = |percent: u32| sorted.quantile(f64::from(percent) / 100.0).unwrap_or(0.0);
        Class {
            flows: sorted.len() as u64,
            median_bps: at(50),
            mean_bps: mean,
            variation: libm::sqrt(variance) / mean,
            quantiles_bps: (1..20).map(|i| at(5 * i)).collect(),
        }
    }
}

fn bins(flows: impl Iterator<Item = (u64, f64)>) -> BTreeMap<u32, SizeBin> {
    let mut bins: BTreeMap<u32, SizeBin> = BTreeMap::new();
    for (packets, rate) in flows {
        let bin = libm::floor(libm::log10(packets.max(1) as f64) * BINS_PER_DECADE) as u32;
        let flow = SizeBin { flows: 1, packets: packets as f64, mean_bps: rate };
        bins.entry(bin).or_default().add(&flow);
    }
    bins
}

impl SizeBin {
    fn add(&mut self, other: &SizeBin) {
        let flows = self.flows + other.flows;
        let share = other.flows as f64 / flows as f64;
        self.packets += (other.packets - self.packets) * share;
        self.mean_bps += (other.mean_bps - self.mean_bps) * share;
        self.flows = flows;
    }

    /// Merges several runs' bins, ordered by size.
    pub fn merged<'a>(runs: impl Iterator<Item = &'a BTreeMap<u32, SizeBin>>) -> Vec<SizeBin> {
        let mut all: BTreeMap<u32, SizeBin> = BTreeMap::new();
        for (bin, flows) in runs.flatten() {
            all.entry(*bin).or_default().add(flows);
        }
        all.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_statistics_match_a_hand_calculation() {
        // Mean 3, squared deviations 4 + 1 + 0 + 9 = 14, standard deviation sqrt(3.5).
        let class = Class::of(&[6.0, 1.0, 2.0, 3.0]);
        assert_eq!((class.flows, class.median_bps, class.mean_bps), (4, 2.5, 3.0));
        assert!((class.variation - libm::sqrt(3.5) / 3.0).abs() < 1e-12);
        assert_eq!(class.quantiles_bps.len(), 19);
        assert_eq!(Class::of(&[]), Class::default());
    }

    #[test]
    fn losses_two_rtts_apart_are_separate_events() {
        // 60 ms + 40 ms: losses within 200 ms are one event.
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
    fn size_bins_grow_exponentially_and_merge_across_runs() {
        let found = bins([(1, 2.0), (10, 4.0), (11, 6.0), (100, 8.0)].into_iter());
        let counts: Vec<(u32, u64)> = found.iter().map(|(bin, of)| (*bin, of.flows)).collect();
        assert_eq!(counts, [(0, 1), (5, 2), (10, 1)]);
        assert_eq!((found[&5].packets, found[&5].mean_bps), (10.5, 5.0));
        // (2 x 5 + 2 x 5 + 1 x 15) / 5 = 7.
        let more = bins([(12, 15.0)].into_iter());
        let merged = SizeBin::merged([&found, &found, &more].into_iter());
        assert!((merged[1].mean_bps - 7.0).abs() < 1e-12 && merged[1].flows == 5);
    }
}
