use serde::Serialize;
use sweetspot_scenario::{Outcome, Recorder, Sample, Scenario};
use sweetspot_units::Duration;

use crate::AnswerError;

/// A run with its time series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampledRun {
    /// The outcome.
    pub outcome: Outcome,
    /// The samples of its first transfer.
    pub samples: Samples,
}

/// Samples, column by column.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Samples {
    #[serde(skip)]
    interval: Duration,
    /// Seconds since the start of the run.
    pub at_s: Vec<f64>,
    /// Congestion window, packets.
    pub cwnd_packets: Vec<f64>,
    /// Advertised window, bytes.
    pub window_bytes: Vec<u64>,
    /// Payload acknowledged since the transfer started, bytes.
    pub acked_bytes: Vec<u64>,
    /// Round-trip time of the packet acknowledged last, seconds.
    pub rtt_s: Vec<Option<f64>>,
    /// Packets queued at the bottleneck.
    pub queue_packets: Vec<u64>,
    /// Packets dropped at the bottleneck so far.
    pub dropped_packets: Vec<u64>,
}

/// Maximum number of samples: more than a page can draw.
pub(crate) const MAX_SAMPLES: u64 = 100_000;

impl Samples {
    /// An empty series with this interval between samples.
    pub fn every(interval: Duration, scenario: &Scenario) -> Result<Samples, AnswerError> {
        let span = scenario.warmup + scenario.duration;
        if interval == Duration::ZERO || span / MAX_SAMPLES > interval {
            return Err(AnswerError::TooManySamples(interval));
        }
        Ok(Samples { interval, ..Samples::default() })
    }
}

impl Recorder for Samples {
    fn interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn record(&mut self, sample: &Sample) {
        if sample.transfer != 0 {
            return;
        }
        self.at_s.push(sample.at_s);
        self.cwnd_packets.push(sample.cwnd_packets);
        self.window_bytes.push(sample.window_bytes);
        self.acked_bytes.push(sample.acked_bytes);
        self.rtt_s.push(sample.rtt_s);
        self.queue_packets.push(sample.queue_packets);
        self.dropped_packets.push(sample.dropped_packets);
    }
}
