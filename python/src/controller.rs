//! Controllers written in Python: the interface of `sweetspot_sizing::Controller`, call by call.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sweetspot_sim::ControllerMaker;
use sweetspot_sizing as sizing;
use sweetspot_sizing::{Controller, Event, EventKind, Output, Phase, Setting, TrainRequest};
use sweetspot_units::{Bytes, Duration, Rate, Time};

/// What a controller is told before the first byte.
#[pyclass(frozen, get_all, module = "sweetspot._core")]
#[derive(Debug)]
pub struct ControllerSetting {
    /// Payload bytes in a full packet.
    mss: u64,
    /// Bytes of a full packet on the wire.
    packet: u64,
    /// The largest window that the host lets a connection advertise, bytes.
    max_window: u64,
}

/// What a periodic probe brought back.
#[pyclass(frozen, get_all, module = "sweetspot._core")]
#[derive(Debug)]
pub struct Probe {
    /// Round trip of this probe, seconds.
    rtt: f64,
    /// Answers now known to be lost on the forward path since the answer before this one.
    forward_lost: u64,
    /// Segments the sender has retransmitted so far; ``None`` where it does not say.
    retransmitted: Option<u64>,
    /// The sender's congestion window, bytes; ``None`` where it does not say.
    cwnd: Option<u64>,
    /// Whether the sender had nothing to send at some time since its last report.
    starved: bool,
}

/// Dispersion of a packet train at the receiver.
#[pyclass(frozen, get_all, module = "sweetspot._core")]
#[derive(Debug)]
pub struct Train {
    /// Packets sent.
    sent: u32,
    /// Packets that arrived.
    received: u32,
    /// Bytes of those that arrived after the first one, on the wire.
    bytes_after_first: u64,
    /// Time from the arrival of the first to that of the last, seconds.
    dispersion: f64,
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

/// Carries every call over to a Python object. After the first exception it makes none.
pub(crate) struct Bridge {
    object: Py<PyAny>,
    failure: Failure,
}

impl Bridge {
    /// What gives `object` its setting and puts it to work when its transfer begins.
    pub(crate) fn maker(object: Py<PyAny>, failure: Failure) -> ControllerMaker {
        Box::new(move |setting: &Setting| {
            let bridge = Bridge { object, failure };
            let setting = ControllerSetting {
                mss: setting.mss.get(),
                packet: setting.packet.get(),
                max_window: setting.max_window.get(),
            };
            bridge.call(|object| object.call_method1("begin", (setting,)).map(drop));
            Box::new(bridge)
        })
    }

    fn call<R: Default>(&self, job: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>) -> R {
        if self.failure.is_there() {
            return R::default();
        }
        Python::attach(|py| {
            job(self.object.bind(py)).unwrap_or_else(|error| {
                self.failure.keep(error);
                R::default()
            })
        })
    }
}

fn seconds(now: Time) -> f64 {
    now.as_secs_f64()
}

impl Controller for Bridge {
    fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes) {
        let arguments = (seconds(now), bytes.get(), unread.get());
        self.call(|object| object.call_method1("handle_data", arguments).map(drop));
    }

    fn handle_probe(&mut self, now: Time, probe: &sizing::Probe) {
        let probe = Probe {
            rtt: probe.rtt.as_secs_f64(),
            forward_lost: probe.forward_lost,
            retransmitted: probe.sender.map(|sender| sender.retransmitted),
            cwnd: probe.sender.map(|sender| sender.cwnd.get()),
            starved: probe.sender.is_some_and(|sender| sender.starved),
        };
        self.call(|object| object.call_method1("handle_probe", (seconds(now), probe)).map(drop));
    }

    fn handle_kernel_rtt(&mut self, now: Time, rtt: Duration) {
        let arguments = (seconds(now), rtt.as_secs_f64());
        self.call(|object| object.call_method1("handle_kernel_rtt", arguments).map(drop));
    }

    fn handle_train(&mut self, now: Time, train: &sizing::Train) {
        let train = Train {
            sent: train.sent,
            received: train.received,
            bytes_after_first: train.bytes_after_first.get(),
            dispersion: train.dispersion.as_secs_f64(),
        };
        self.call(|object| object.call_method1("handle_train", (seconds(now), train)).map(drop));
    }

    fn handle_window(&mut self, now: Time, advertised: Bytes) {
        let arguments = (seconds(now), advertised.get());
        self.call(|object| object.call_method1("handle_window", arguments).map(drop));
    }

    fn handle_timeout(&mut self, now: Time) {
        self.call(|object| object.call_method1("handle_timeout", (seconds(now),)).map(drop));
    }

    fn poll_timeout(&self) -> Option<Time> {
        let due = self.call(|object| object.call_method0("poll_timeout")?.extract::<Option<f64>>());
        due.map(|seconds| Time::ZERO + Duration::from_secs_f64(seconds.max(0.0)))
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.call(|object| {
            let output: Option<(f64, String, Option<f64>, u32)> =
                object.call_method0("poll_output")?.extract()?;
            output.map(read).transpose()
        })
    }

    fn phase(&self) -> Phase {
        Phase::HandsOff
    }
}

/// An output as the class `Controller` of the package writes it: time, name, number, count.
fn read((now, name, number, count): (f64, String, Option<f64>, u32)) -> PyResult<Output> {
    let bytes = || Bytes::from_f64(number.unwrap_or(0.0));
    let event = |kind| Output::Event(Event { at: Time::ZERO + Duration::from_secs_f64(now), kind });
    Ok(match name.as_str() {
        "window" => Output::Window(number.map(Bytes::from_f64)),
        "pacing" => Output::Pacing(number.map(Rate::from_f64)),
        "train" => Output::Train(TrainRequest { packets: count, size: bytes() }),
        "limited" => event(EventKind::Limited { window: bytes() }),
        "tightened" => event(EventKind::Tightened { window: bytes() }),
        "lifted" => event(EventKind::Lifted),
        "congested" => event(EventKind::Congested),
        "reopened" => event(EventKind::Reopened),
        other => {
            return Err(PyValueError::new_err(format!(
                "unknown event \"{other}\"; known are limited, tightened, lifted, congested, reopened"
            )));
        }
    })
}
