//! The outcome as Python sees it: the same members as `sweetspot run --json` prints.

use pyo3::prelude::*;
use sweetspot_scenario as scenario;

/// An engine's result.
#[pyclass(frozen, module = "sweetspot._core")]
#[derive(Debug)]
pub struct Outcome(pub(crate) scenario::Outcome);

/// One transfer, over the measured interval.
#[pyclass(frozen, module = "sweetspot._core")]
#[derive(Debug)]
pub struct TransferOutcome(scenario::TransferOutcome);

/// One entry of cross traffic, over the measured interval.
#[pyclass(frozen, module = "sweetspot._core")]
#[derive(Debug)]
pub struct CrossOutcome(scenario::CrossOutcome);

/// The bottleneck link.
#[pyclass(frozen, module = "sweetspot._core")]
#[derive(Debug)]
pub struct BottleneckOutcome(scenario::BottleneckOutcome);

/// An action of a controller.
#[pyclass(frozen, module = "sweetspot._core")]
#[derive(Debug)]
pub struct ControllerEvent(scenario::ControllerEvent);

/// Read-only members that are plain numbers.
macro_rules! numbers {
    ($class:ident { $($(#[doc = $doc:literal])+ $name:ident: $type:ty,)* } $($rest:tt)*) => {
        #[pymethods]
        impl $class {
            $($(#[doc = $doc])+ #[getter] fn $name(&self) -> $type { self.0.$name.clone() })*
            $($rest)*
        }
    };
}

numbers!(TransferOutcome {
    /// Payload acknowledged, bit/s: over the measured time or, for a transfer with a size, over the part of it from
    /// start to completion.
    goodput_bps: f64,
    /// Mean RTT of its packets, seconds.
    rtt_mean_s: f64,
    /// 99th percentile of the RTT, seconds, within 1 %.
    rtt_p99_s: f64,
    /// Packets lost relative to packets sent.
    loss_rate: f64,
    /// Retransmitted packets.
    retransmitted_packets: u64,
    /// Retransmission timeouts.
    timeouts: u64,
    /// The window advertised at the end, bytes of payload.
    window_final_bytes: u64,
    /// Time from the start to the last ACK, seconds, if it has a size and finished in time.
    completion_s: Option<f64>,
    /// How the window was sized.
    sizing: String,
}
    /// The sizing controller's decisions and reasons, from the start.
    #[getter]
    fn events(&self) -> Vec<ControllerEvent> {
        self.0.events.iter().cloned().map(ControllerEvent).collect()
    }
);

numbers!(CrossOutcome {
    /// Its kind, as named in the scenario.
    kind: String,
    /// Payload acknowledged (TCP) or received (UDP), bit/s, summed over both directions.
    goodput_bps: f64,
    /// The part of the goodput in the direction of the measured transfers' data, bit/s.
    forward_goodput_bps: Option<f64>,
    /// The part of the goodput in the opposite direction, bit/s.
    reverse_goodput_bps: Option<f64>,
    /// Packets lost relative to packets sent.
    loss_rate: f64,
    /// Retransmitted packets.
    retransmitted_packets: u64,
    /// Retransmission timeouts.
    timeouts: u64,
    /// Transfers that finished; None if traffic of this kind never does.
    completed: Option<u64>,
    /// Their mean duration, seconds; None if none finished.
    completion_mean_s: Option<f64>,
});

numbers!(BottleneckOutcome {
    /// Fraction of the capacity used, including ACKs.
    utilisation: f64,
    /// Utilisation over the last third of the time before the first transfer.
    utilisation_before: f64,
    /// Packets dropped relative to packets that arrived.
    loss_rate: f64,
    /// Number of waiting packets, averaged over time.
    queue_mean_packets: f64,
    /// Maximum number of waiting packets.
    queue_max_packets: u64,
    /// Queueing delay, averaged over time, seconds.
    queue_delay_mean_s: f64,
});

numbers!(ControllerEvent {
    /// Time of the event, seconds since the start of the run.
    at_s: f64,
    /// The event.
    kind: String,
    /// The window limit set, bytes, if any.
    window_bytes: Option<u64>,
    /// The rate measured, bit/s, if any.
    rate_bps: Option<f64>,
    /// The RTT measured, seconds.
    rtt_s: Option<f64>,
});

#[pymethods]
impl Outcome {
    /// This outcome without the events of sizing controllers.
    fn without_events(&self) -> Outcome {
        let mut outcome = self.0.clone();
        for transfer in &mut outcome.transfers {
            transfer.events.clear();
        }
        Outcome(outcome)
    }

    /// The scenario's title.
    #[getter]
    fn scenario(&self) -> &str {
        &self.0.scenario
    }

    /// The engine that ran it.
    #[getter]
    fn engine(&self) -> &str {
        &self.0.engine
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed
    }

    /// The version of Sweetspot.
    #[getter]
    fn version(&self) -> &str {
        &self.0.version
    }

    /// All transfers, in file order.
    #[getter]
    fn transfers(&self) -> Vec<TransferOutcome> {
        self.0.transfers.iter().cloned().map(TransferOutcome).collect()
    }

    /// All entries of cross traffic, each summed over both directions.
    #[getter]
    fn cross(&self) -> Vec<CrossOutcome> {
        self.0.cross.iter().cloned().map(CrossOutcome).collect()
    }

    /// The bottleneck link, in the direction of the data.
    #[getter]
    fn bottleneck(&self) -> BottleneckOutcome {
        BottleneckOutcome(self.0.bottleneck.clone())
    }

    /// Number of events that the engine processed.
    #[getter]
    fn events(&self) -> u64 {
        self.0.events
    }

    /// Packets sent by the links between routers, in both directions.
    #[getter]
    fn packets_forwarded(&self) -> u64 {
        self.0.packets_forwarded
    }

    /// Duration of the run, seconds: the only member that differs between two runs with the same seed.
    #[getter]
    fn wall_s(&self) -> f64 {
        self.0.wall_s
    }

    /// The object that ``sweetspot run --json`` prints, byte for byte except for ``wall_s``.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string_pretty(&self.0)
            .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))
    }

    /// An outcome from the JSON that ``to_json`` or the command line wrote.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Outcome> {
        serde_json::from_str(text).map(Outcome).map_err(|error| {
            pyo3::exceptions::PyValueError::new_err(format!("no outcome: {error}"))
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let from_json = slf.get_type().getattr("from_json")?;
        Ok((from_json, (slf.get().to_json()?,)))
    }

    fn __repr__(&self) -> String {
        let rates: Vec<String> =
            self.0.transfers.iter().map(|t| format!("{:.2}", t.goodput_bps / 1e6)).collect();
        format!(
            "<Outcome \"{}\" by {}, seed {}: {} Mbit/s>",
            self.0.scenario,
            self.0.engine,
            self.0.seed,
            rates.join(", ")
        )
    }
}
