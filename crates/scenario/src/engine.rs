use sweetspot_units::Duration;
use thiserror::Error;

use crate::{Outcome, Scenario};

/// An engine that runs scenarios: closed forms, a simulation, or this machine's kernel.
pub trait Engine {
    /// The engine's name, as in `--engine`.
    fn name(&self) -> &'static str;

    /// Runs `scenario` and passes every sample of its time series to `recorder`.
    fn run(&self, scenario: &Scenario, recorder: &mut dyn Recorder) -> EngineResult;
}

/// The outcome of a run, or the reason why there is none.
pub type EngineResult = Result<Outcome, EngineError>;

/// Receives time series during a run.
pub trait Recorder {
    /// Interval between samples; `None`: no samples.
    fn interval(&self) -> Option<Duration>;

    /// One sample of one transfer.
    fn record(&mut self, sample: &Sample);

    /// Whether the recorder wants each connection of cross traffic.
    fn wants_flows(&self) -> bool {
        false
    }

    /// Receives a finished connection of cross traffic, with all data acknowledged. Connections are reported in the order in
    /// which they finished, and only if they finished within the measured time.
    fn record_flow(&mut self, _flow: &FinishedFlow) {}
}

/// A connection of cross traffic from its SYN to the last ACK.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedFlow {
    /// Index of its entry in the list of cross traffic, from 0.
    pub entry: usize,
    /// Number of data packets.
    pub packets: u64,
    /// Duration, seconds.
    pub duration_s: f64,
    /// Round-trip propagation delay, seconds.
    pub propagation_s: f64,
    /// Times at which routers dropped its data, seconds since the start of the run, in order.
    pub losses_s: Vec<f64>,
}

/// The state of one transfer and of the bottleneck at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Seconds since the start of the run.
    pub at_s: f64,
    /// Index of the transfer, from 0.
    pub transfer: usize,
    /// Congestion window, packets.
    pub cwnd_packets: f64,
    /// Slow-start threshold, packets.
    pub ssthresh_packets: f64,
    /// Advertised window, bytes of payload.
    pub window_bytes: u64,
    /// Payload acknowledged since the transfer started, bytes.
    pub acked_bytes: u64,
    /// RTT of the packet acknowledged last, seconds; `None` if unknown.
    pub rtt_s: Option<f64>,
    /// Packets queued at the bottleneck.
    pub queue_packets: u64,
    /// Packets dropped at the bottleneck so far.
    pub dropped_packets: u64,
    /// Utilisation of the bottleneck since the previous sample, 0 to 1; `None` if unknown.
    pub utilisation: Option<f64>,
}

/// A recorder that wants no samples.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRecorder;

impl Recorder for NoRecorder {
    fn interval(&self) -> Option<Duration> {
        None
    }
    fn record(&mut self, _sample: &Sample) {}
}

/// Why an engine could not run a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EngineError {
    /// The scenario uses a feature that this engine does not support.
    #[error("the {engine} engine cannot run this scenario: {reason}")]
    Unsupported {
        /// The engine.
        engine: &'static str,
        /// The unsupported feature, and the change that avoids it.
        reason: String,
    },
    /// No closed form is known for the scenario.
    #[error("not covered by a closed form, because {because}")]
    NotCovered {
        /// The reason.
        because: String,
    },
    /// The engine supports the scenario, but failed.
    #[error("the {engine} engine failed: {reason}")]
    Failed {
        /// The engine.
        engine: &'static str,
        /// The failure, and the next step.
        reason: String,
    },
}
