//! Random paths, each run in the simulator and in the lab, and the differences between the two.

mod document;
mod drawing;

pub use document::{PopulationInfo, population_document, population_text};
pub use drawing::{PathDrawing, PopulationRun};

use serde::Serialize;
use sweetspot_scenario::Outcome;

use sweetspot_statistics::{Sorted, median};

/// The compared values of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunValues {
    /// Payload delivered, bit/s.
    pub goodput_bps: f64,
    /// Packets retransmitted.
    pub retransmitted: f64,
    /// Mean RTT, seconds.
    pub rtt_s: f64,
}

/// One path with one congestion control and one sizing, run in both engines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EnginePair {
    /// The path's number.
    pub path: u64,
    /// Congestion control.
    pub congestion: String,
    /// Sizing.
    pub sizing: String,
    /// Rate, Mbit/s.
    pub rate_mbit: f64,
    /// RTT, milliseconds.
    pub rtt_ms: f64,
    /// Buffer, packets.
    pub buffer_packets: u64,
    /// Buffer in bandwidth-delay products.
    pub buffer_bdp: f64,
    /// Random loss, as a probability.
    pub loss: f64,
    /// The lab run that is compared.
    pub lab: RunValues,
    /// Further lab runs with other seeds, for a pair that differs.
    pub lab_again: Vec<RunValues>,
    /// The simulator's runs, one per seed.
    pub sim: Vec<RunValues>,
}

/// A quantity in which the engines may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ComparedValue {
    /// Goodput.
    Goodput,
    /// Packets retransmitted.
    Retransmissions,
    /// Mean RTT.
    Rtt,
}

/// Medians and 90 % quantiles over the pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Agreement {
    /// Number of pairs.
    pub pairs: usize,
    /// |simulator / kernel - 1| of the goodput.
    pub goodput: [f64; 2],
    /// Ratio of the larger number of retransmitted packets to the smaller, with one added to both.
    pub retransmissions: [f64; 2],
    /// |simulator / kernel - 1| of the mean RTT.
    pub rtt: [f64; 2],
}

/// Bound of [`Agreement::goodput`] for the median.
pub const GOODPUT_MEDIAN: f64 = 0.04;
/// Bound of [`Agreement::goodput`] for nine of ten pairs.
pub const GOODPUT_NINE_OF_TEN: f64 = 0.12;
/// Bound of [`Agreement::retransmissions`] for the median.
pub const RETRANSMISSIONS_MEDIAN: f64 = 1.5;

impl RunValues {
    /// The values of the first transfer of `outcome`.
    pub fn of(outcome: &Outcome) -> Option<RunValues> {
        let transfer = outcome.transfers.first()?;
        Some(RunValues {
            goodput_bps: transfer.goodput_bps,
            retransmitted: transfer.retransmitted_packets as f64,
            rtt_s: transfer.rtt_mean_s,
        })
    }

    fn get(&self, value: ComparedValue) -> f64 {
        match value {
            ComparedValue::Goodput => self.goodput_bps,
            ComparedValue::Retransmissions => self.retransmitted,
            ComparedValue::Rtt => self.rtt_s,
        }
    }
}

impl EnginePair {
    /// The median over the simulator's runs.
    pub fn simulated(&self, value: ComparedValue) -> f64 {
        median(self.sim.iter().map(|run| run.get(value))).unwrap_or(f64::NAN)
    }

    /// The simulator's value relative to the kernel's. One is added to counts to avoid zeros.
    pub fn ratio(&self, value: ComparedValue) -> f64 {
        let more = if value == ComparedValue::Retransmissions { 1.0 } else { 0.0 };
        (self.simulated(value) + more) / (self.lab.get(value) + more)
    }

    /// The difference between the engines: |ratio - 1|, or, for counts, the ratio or its inverse, whichever is
    /// larger.
    pub fn difference(&self, value: ComparedValue) -> f64 {
        let ratio = self.ratio(value);
        match value {
            ComparedValue::Retransmissions => ratio.max(1.0 / ratio),
            _ => (ratio - 1.0).abs(),
        }
    }

    /// Whether the kernel's run is within the range of the simulator's runs with other seeds, so that the
    /// difference is random.
    pub fn is_chance(&self, value: ComparedValue) -> bool {
        lies_among(self.lab.get(value), self.sim.iter().map(|run| run.get(value)))
    }

    /// Whether the simulator's median is within the range of the kernel's own runs, which vary that much.
    pub fn is_kernels_chance(&self, value: ComparedValue) -> bool {
        let runs = self.lab_again.iter().chain([&self.lab]);
        lies_among(self.simulated(value), runs.map(|run| run.get(value)))
    }

    /// Whether goodput differs by more than the bound for nine of ten pairs, beyond the simulator's random
    /// variation.
    pub fn is_to_be_explained(&self) -> bool {
        self.difference(ComparedValue::Goodput) > GOODPUT_NINE_OF_TEN
            && !self.is_chance(ComparedValue::Goodput)
    }
}

/// Whether `value` is within the range of `others`, if these vary.
fn lies_among(value: f64, others: impl Iterator<Item = f64> + Clone) -> bool {
    let min = others.clone().fold(f64::INFINITY, f64::min);
    let max = others.fold(f64::NEG_INFINITY, f64::max);
    min < max && (min..=max).contains(&value)
}

impl Agreement {
    /// Agreement over `pairs`; `None` if there are none.
    pub fn of<'a>(pairs: impl IntoIterator<Item = &'a EnginePair>) -> Option<Agreement> {
        let pairs: Vec<&EnginePair> = pairs.into_iter().collect();
        let both = |value| {
            let differences: Sorted = pairs.iter().map(|pair| pair.difference(value)).collect();
            differences.quantiles([0.5, 0.9])
        };
        Some(Agreement {
            pairs: pairs.len(),
            goodput: both(ComparedValue::Goodput)?,
            retransmissions: both(ComparedValue::Retransmissions)?,
            rtt: both(ComparedValue::Rtt)?,
        })
    }

    /// Whether each bound is met.
    pub fn kept(&self) -> [bool; 3] {
        [
            self.goodput[0] <= GOODPUT_MEDIAN,
            self.goodput[1] <= GOODPUT_NINE_OF_TEN,
            self.retransmissions[0] <= RETRANSMISSIONS_MEDIAN,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(goodput_bps: f64, retransmitted: f64) -> RunValues {
        RunValues { goodput_bps, retransmitted, rtt_s: 0.05 }
    }

    fn pair(lab: RunValues, sim: &[RunValues]) -> EnginePair {
        EnginePair {
            path: 0,
            congestion: "cubic".to_owned(),
            sizing: "kernel".to_owned(),
            rate_mbit: 10.0,
            rtt_ms: 50.0,
            buffer_packets: 10,
            buffer_bdp: 0.2,
            loss: 0.0,
            lab,
            lab_again: Vec::new(),
            sim: sim.to_vec(),
        }
    }

    #[test]
    fn a_difference_is_relative_to_the_simulators_median() {
        let runs = [values(8.0, 1.0), values(9.0, 5.0), values(12.0, 9.0)];
        let pair = pair(values(10.0, 2.0), &runs);
        assert!((pair.difference(ComparedValue::Goodput) - 0.1).abs() < 1e-12);
        // (5 + 1) / (2 + 1), and its inverse for the opposite order.
        assert!((pair.difference(ComparedValue::Retransmissions) - 2.0).abs() < 1e-12);
        assert_eq!(pair.difference(ComparedValue::Rtt), 0.0);
    }

    #[test]
    fn chance_is_the_range_of_the_simulators_runs() {
        let runs = [values(8.0, 0.0), values(12.0, 0.0)];
        assert!(pair(values(10.0, 0.0), &runs).is_chance(ComparedValue::Goodput));
        assert!(!pair(values(7.0, 0.0), &runs).is_chance(ComparedValue::Goodput));
        // Runs that do not vary span no range.
        let same = pair(values(8.0, 0.0), &runs[..1]);
        assert!(!same.is_chance(ComparedValue::Goodput));
    }

    #[test]
    fn kernel_variation_between_repetitions_explains_a_difference() {
        let mut pair = pair(values(5.0, 0.0), &[values(9.0, 0.0)]);
        assert!(pair.is_to_be_explained());
        assert!(!pair.is_kernels_chance(ComparedValue::Goodput));
        pair.lab_again = vec![values(6.0, 0.0), values(9.5, 0.0)];
        assert!(pair.is_kernels_chance(ComparedValue::Goodput));
        pair.lab_again.pop();
        assert!(!pair.is_kernels_chance(ComparedValue::Goodput));
    }

    #[test]
    fn agreement_is_bounded_at_the_median_and_the_90th_percentile() {
        let off = |percent: f64| pair(values(100.0, 0.0), &[values(100.0 + percent, 0.0)]);
        let pairs: Vec<EnginePair> = (0..=10).map(|i| off(f64::from(i))).collect();
        let agreement = Agreement::of(&pairs).expect("there are pairs");
        assert!((agreement.goodput[0] - 0.05).abs() < 1e-12);
        assert!((agreement.goodput[1] - 0.09).abs() < 1e-12);
        assert_eq!(agreement.kept(), [false, true, true]);
        assert_eq!(Agreement::of(&[]), None);
    }
}
