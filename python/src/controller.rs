//! Controllers written in Python: the contract of `sweetspot_sizing::Controller`, with the
//! dataclasses of `sweetspot.contract`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sweetspot_sim::ControllerMaker;
use sweetspot_sizing::{
    CongestionChoice, CongestionState, Controller, ControllerConfig, EventKind, Input, Needs,
    Output, Probing, Reason, SenderReport, SizingEvent, SizingPhase, TrainRequest,
};
use sweetspot_units::{Bytes, Duration, Rate, Time};

/// A controller's configuration before the first byte.
#[pyclass(frozen, get_all, name = "ControllerConfig", module = "sweetspot._core")]
#[derive(Debug)]
pub struct PyControllerConfig {
    /// Payload bytes in a full packet.
    mss: u64,
    /// Length of a full packet on the wire, bytes.
    packet: u64,
    /// The largest window that the host lets a connection advertise, bytes.
    max_window: u64,
    /// Bytes that the transfer will move, if known in advance.
    size: Option<u64>,
}

/// The first exception that a controller raised.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<PyErr>>>);

impl Failure {
    fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    fn is_there(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(crate) fn raise(&self) -> PyResult<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// Passes every call to a Python object, until the first exception.
pub(crate) struct Bridge {
    object: Py<PyAny>,
    failure: Failure,
    needs: Needs,
    phase: SizingPhase,
    /// The time at which the object asked to be called.
    due: Option<Time>,
    outputs: VecDeque<Output>,
}

impl Bridge {
    /// A maker that passes `object` its config and starts it when its transfer begins.
    pub(crate) fn maker(object: Py<PyAny>, failure: Failure) -> ControllerMaker {
        Box::new(move |config: &ControllerConfig| {
            let mut bridge = Bridge {
                object,
                failure,
                needs: Needs::NOTHING,
                phase: SizingPhase::HandsOff,
                due: None,
                outputs: VecDeque::new(),
            };
            let config = PyControllerConfig {
                mss: config.mss.get(),
                packet: config.packet.get(),
                max_window: config.max_window.get(),
                size: config.size.map(Bytes::get),
            };
            bridge.with_object(|bridge, object| {
                bridge.needs = needs(&object.call_method0("needs")?)?;
                let answer = object.call_method1("begin", (config,))?;
                bridge.take_in(Time::ZERO, object, &answer)
            });
            Box::new(bridge)
        })
    }

    /// Calls the Python object, unless an earlier call has failed.
    fn with_object(&mut self, job: impl FnOnce(&mut Bridge, &Bound<'_, PyAny>) -> PyResult<()>) {
        if self.failure.is_there() {
            return;
        }
        Python::attach(|py| {
            let object = self.object.clone_ref(py).into_bound(py);
            if let Err(error) = job(self, &object) {
                self.failure.keep(error);
                self.due = None;
            }
        });
    }

    /// Reads the object's outputs, and the time at which it wants to be called.
    fn take_in(
        &mut self,
        now: Time,
        object: &Bound<'_, PyAny>,
        answer: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if !answer.is_none() {
            for output in answer.try_iter()? {
                let output = read_output(now, &output?)?;
                if let Output::Event(SizingEvent {
                    kind: EventKind::Entered { phase, .. }, ..
                }) = output
                {
                    self.phase = phase;
                }
                self.outputs.push_back(output);
            }
        }
        let due: Option<f64> = object.getattr("_due")?.extract()?;
        self.due = due.map(|seconds| Time::ZERO + Duration::from_secs_f64(seconds.max(0.0)));
        Ok(())
    }
}

impl Controller for Bridge {
    fn handle(&mut self, now: Time, input: &Input) {
        // A timer of the bridge itself, which requests the object's outputs from the start of the
        // transfer.
        if *input == Input::Timeout && self.due.is_none_or(|due| due > now) {
            return;
        }
        self.with_object(|bridge, object| {
            let contract = object.py().import("sweetspot.contract")?;
            let input = write_input(&contract, input)?;
            let answer = object.call_method1("handle", (now.as_secs_f64(), input))?;
            bridge.take_in(now, object, &answer)
        });
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.outputs.is_empty() { self.due } else { Some(Time::ZERO) }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn phase(&self) -> SizingPhase {
        self.phase
    }
}

fn needs(needs: &Bound<'_, PyAny>) -> PyResult<Needs> {
    let flag = |name: &str| needs.getattr(name)?.extract::<bool>();
    let probes: String = needs.getattr("probes")?.extract()?;
    Ok(Needs {
        probes: named(&PROBING, "probing", &probes)?,
        trains: flag("trains")?,
        data: flag("data")?,
        kernel_rtt: flag("kernel_rtt")?,
        minimum_rtt: flag("minimum_rtt")?,
        out_of_order: flag("out_of_order")?,
        window: flag("window")?,
    })
}

/// Converts an input to the dataclass of its name.
fn write_input<'py>(contract: &Bound<'py, PyModule>, input: &Input) -> PyResult<Bound<'py, PyAny>> {
    let class = |name: &str| contract.getattr(name);
    match *input {
        Input::Data { bytes, unread } => class("Data")?.call1((bytes.get(), unread.get())),
        Input::Probe(probe) => class("Probe")?.call1((probe.rtt.as_secs_f64(), probe.forward_lost)),
        Input::Sender(report) => write_report(&class("Sender")?, &report),
        Input::KernelRtt(rtt) => class("KernelRtt")?.call1((rtt.as_secs_f64(),)),
        Input::MinimumRtt(rtt) => class("MinimumRtt")?.call1((rtt.as_secs_f64(),)),
        Input::OutOfOrder { segments } => class("OutOfOrder")?.call1((segments,)),
        Input::Train(train) => class("Train")?.call1((
            train.sent,
            train.received,
            train.bytes_after_first.get(),
            train.dispersion.as_secs_f64(),
        )),
        Input::Window { advertised } => class("Window")?.call1((advertised.get(),)),
        Input::Timeout => class("Timeout")?.call0(),
        Input::End => class("End")?.call0(),
        other => Err(PyNotImplementedError::new_err(format!(
            "sweetspot.contract has no class for {other:?}"
        ))),
    }
}

fn write_report<'py>(
    class: &Bound<'py, PyAny>,
    report: &SenderReport,
) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(class.py());
    fields.set_item("retransmitted", report.retransmitted)?;
    fields.set_item("cwnd", report.cwnd.get())?;
    fields.set_item("ssthresh", report.ssthresh.map(Bytes::get))?;
    fields.set_item("in_flight", report.in_flight.get())?;
    fields.set_item("delivery_rate", report.delivery_rate.as_f64())?;
    fields.set_item("app_limited", report.app_limited)?;
    fields.set_item("busy", report.busy.as_secs_f64())?;
    fields.set_item("window_limited", report.window_limited.as_secs_f64())?;
    fields.set_item("minimum_rtt", report.minimum_rtt.as_secs_f64())?;
    fields.set_item(
        "state",
        match report.state {
            CongestionState::Open => "open",
            CongestionState::Disorder => "disorder",
            CongestionState::Reduced => "reduced",
            CongestionState::Recovery => "recovery",
            CongestionState::Loss => "loss",
        },
    )?;
    fields.set_item("reordering", report.reordering)?;
    fields.set_item("dsacks", report.dsacks)?;
    fields.set_item("marked", report.marked)?;
    fields.set_item("starved", report.starved)?;
    class.call((), Some(&fields))
}

/// Converts an output from the dataclass of its name.
fn read_output(now: Time, output: &Bound<'_, PyAny>) -> PyResult<Output> {
    let number = |field: &str| output.getattr(field)?.extract::<Option<f64>>().and_then(sensible);
    let given = |field: &str| {
        let missing = || PyValueError::new_err(format!("{field} must be a number"));
        number(field)?.ok_or_else(missing)
    };
    let rate = || given("rate").map(Rate::from_f64);
    let rtt = || given("rtt").map(Duration::from_secs_f64);
    let word = |field: &str| output.getattr(field)?.extract::<String>();
    let name = output.get_type().name()?;
    let kind = match name.to_str()? {
        "SetWindow" => return Ok(Output::Window(number("size")?.map(Bytes::from_f64))),
        "SetPacing" => return Ok(Output::Pacing(number("rate")?.map(Rate::from_f64))),
        "RequestTrain" => {
            let packets = output.getattr("packets")?.extract()?;
            let size = Bytes::from_f64(given("size")?);
            return Ok(Output::Train(TrainRequest { packets, size }));
        }
        "SetCongestion" => {
            let choice = named(&CHOICES, "congestion control", &word("choice")?)?;
            return Ok(Output::Congestion(choice));
        }
        "CapacityEstimated" => EventKind::CapacityEstimated { rate: rate()?, rtt: rtt()? },
        "Limited" => EventKind::Limited { window: Bytes::from_f64(given("window")?) },
        "Lifted" => EventKind::Lifted,
        "Saturated" => EventKind::Saturated { rate: rate()?, rtt: rtt()? },
        "Congested" => EventKind::Congested,
        "Entered" => EventKind::Entered {
            phase: named(
                &SizingPhase::ALL.map(|phase| (phase.name(), phase)),
                "phase",
                &word("phase")?,
            )?,
            reason: named(&REASONS, "reason", &word("reason")?)?,
        },
        "Switched" => {
            EventKind::Switched { to: named(&CHOICES, "congestion control", &word("to")?)? }
        }
        other => {
            let why = format!("expected an output of sweetspot.contract.Output, not {other}");
            return Err(PyTypeError::new_err(why));
        }
    };
    Ok(Output::Event(SizingEvent { at: now, kind }))
}

/// A size, rate or time; an error if the number is not a valid one.
fn sensible(number: Option<f64>) -> PyResult<Option<f64>> {
    match number {
        Some(n) if !n.is_finite() || n < 0.0 => {
            Err(PyValueError::new_err(format!("{n} is not a size, rate or time")))
        }
        number => Ok(number),
    }
}

fn named<T: Copy>(names: &[(&str, T)], what: &str, name: &str) -> PyResult<T> {
    let found = names.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = names.iter().map(|(known, _)| *known).collect();
        PyValueError::new_err(format!("unknown {what} \"{name}\"; known are {}", known.join(", ")))
    })
}

const PROBING: [(&str, Probing); 4] = [
    ("never", Probing::Never),
    ("periodic", Probing::Periodic),
    ("budgeted", Probing::Budgeted),
    ("sparse", Probing::Sparse),
];

const CHOICES: [(&str, CongestionChoice); 3] = [
    ("own", CongestionChoice::Own),
    ("reno", CongestionChoice::Reno),
    ("bbr", CongestionChoice::Bbr),
];

const REASONS: [(&str, Reason); 24] = [
    ("capacity-known", Reason::CapacityKnown),
    ("path-remembered", Reason::PathRemembered),
    ("capacity-unclear", Reason::CapacityUnclear),
    ("capacity-unknown", Reason::CapacityUnknown),
    ("short-path", Reason::ShortPath),
    ("short-transfer", Reason::ShortTransfer),
    ("rate-fell", Reason::RateFell),
    ("random-loss", Reason::RandomLoss),
    ("others-queue", Reason::CrossTrafficQueue),
    ("path-faster", Reason::PathFaster),
    ("path-slower", Reason::PathSlower),
    ("overflow", Reason::Overflow),
    ("rate-inelastic", Reason::RateInelastic),
    ("trying-more", Reason::TryingMore),
    ("no-more", Reason::NoMore),
    ("trial-paid", Reason::TrialSucceeded),
    ("trial-failed", Reason::TrialFailed),
    ("ended", Reason::Ended),
    ("queue-gone", Reason::QueueGone),
    ("queue-below-target", Reason::QueueBelowTarget),
    ("queue-above-target", Reason::QueueAboveTarget),
    ("packet-lost", Reason::PacketLost),
    ("slowdown", Reason::Slowdown),
    ("slowdown-over", Reason::SlowdownOver),
];
