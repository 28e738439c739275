//! Time series of a run, for figures over time.

use sweetspot_scenario::{Engine, EngineError, Outcome, Recorder, Sample, Scenario};
use sweetspot_units::{Bytes, Duration, Rate};

/// Samples of one transfer, at intervals of `interval`.
#[derive(Debug)]
pub(super) struct TransferSeries {
    transfer: usize,
    interval: Duration,
    pub(super) samples: Vec<Sample>,
}

impl Recorder for TransferSeries {
    fn interval(&self) -> Option<Duration> {
        Some(self.interval)
    }
    fn record(&mut self, sample: &Sample) {
        if sample.transfer == self.transfer {
            self.samples.push(*sample);
        }
    }
}

impl TransferSeries {
    /// Runs `scenario` and records the transfer of this index.
    pub(super) fn run<E: Engine + ?Sized>(
        engine: &E,
        scenario: &Scenario,
        transfer: usize,
        interval: Duration,
    ) -> Result<(Outcome, TransferSeries), EngineError> {
        let mut watch = TransferSeries { transfer, interval, samples: Vec::new() };
        let outcome = engine.run(scenario, &mut watch)?;
        Ok((outcome, watch))
    }

    /// For each interval, the fraction of packets (of size `packet`) reaching a bottleneck of this capacity that
    /// were dropped.
    pub(super) fn loss_per_interval(
        &self,
        capacity: Rate,
        packet: Bytes,
    ) -> impl Iterator<Item = f64> {
        self.samples.windows(2).map(move |pair| {
            let dropped = pair[1].dropped_packets.saturating_sub(pair[0].dropped_packets) as f64;
            let used = pair[1].utilisation.unwrap_or_default() * (pair[1].at_s - pair[0].at_s);
            let passed = used * capacity.as_f64() / 8.0 / packet.as_f64();
            if dropped > 0.0 { dropped / (dropped + passed) } else { 0.0 }
        })
    }

    /// Goodput in every interval after `start`: seconds since then, and Mbit/s.
    pub(super) fn goodput(&self, start: Duration) -> Vec<(f64, f64)> {
        let start = start.as_secs_f64();
        let rate = |pair: &[Sample]| {
            let bytes = pair[1].acked_bytes.saturating_sub(pair[0].acked_bytes);
            (pair[1].at_s - start, bytes as f64 * 8.0 / (pair[1].at_s - pair[0].at_s) / 1e6)
        };
        self.samples.windows(2).filter(|pair| pair[0].at_s >= start - 1e-9).map(rate).collect()
    }
}
