//! Live sockets: the native part of `sweetspot.sized`.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyNotImplementedError, PyOSError, PyValueError};
use pyo3::prelude::*;
use sweetspot_socket::{
    AttachError, Autotuning, BothEnds, Options, Report, SizedSocket, SocketError,
};

/// Sizes a socket until it is closed.
#[pyclass(frozen, module = "sweetspot._core")]
#[derive(Debug)]
pub struct LiveSocket {
    sized: Mutex<Option<SizedSocket>>,
    /// The invitation for the peer, if this end created one.
    made: Option<Vec<u8>>,
}

/// The state of a live socket, as plain values.
#[pyclass(frozen, get_all, module = "sweetspot._core")]
#[derive(Debug)]
pub struct SocketReport {
    /// ``connecting``, ``active`` or ``idle``.
    activity: &'static str,
    /// Whether the socket sends more data than it receives.
    is_sender: bool,
    /// Payload received, bytes.
    received: u64,
    /// Payload acknowledged by the peer, bytes.
    acked: u64,
    /// The window that the kernel advertised last, bytes; ``None`` on kernels before 6.2.
    window: Option<u64>,
    /// The limit that the library has set on that window, bytes.
    limit: Option<u64>,
    /// The pacing rate that the library has set, bit/s.
    pacing_bps: Option<u64>,
    /// The latest RTT, seconds.
    rtt_s: Option<f64>,
    /// The min RTT, seconds.
    rtt_min_s: Option<f64>,
    /// Payload rate in the direction of most data, bit/s.
    rate_bps: u64,
    /// Whether the library at the peer responds.
    both_ends: bool,
    /// The phase of the window's controller.
    phase: &'static str,
    /// Why the controller entered that phase.
    reason: Option<String>,
    /// The limiting factor during the last seconds, as ``sweetspot diagnose`` names it.
    limited_by: &'static str,
    /// The receive buffer in bytes, if the program set it and thereby turned the kernel's autotuning off.
    locked_buffer: Option<u64>,
}

#[pymethods]
impl LiveSocket {
    /// Attaches the socket with this descriptor. An unknown ``sizing`` or an invalid ``invitation`` raises a ``ValueError``, any
    /// other obstacle an ``OSError``.
    #[new]
    fn new(
        py: Python<'_>,
        descriptor: i32,
        sizing: &str,
        uploads: bool,
        unlock_buffers: bool,
        invite: bool,
        invitation: Option<&[u8]>,
    ) -> PyResult<LiveSocket> {
        let value = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
        let sizing = sizing.parse().map_err(|error| value(&error))?;
        let joined = invitation.map(BothEnds::join).transpose().map_err(|error| value(&error))?;
        let (both_ends, made) = if invite {
            let invited = py.detach(|| invite_at(descriptor)).map_err(|error| os_error(&error))?;
            (Some(invited.0), Some(invited.1))
        } else {
            (joined, None)
        };
        let options = Options { sizing, uploads, unlock_buffers, both_ends, observer: None };
        let sized = py.detach(|| attach(descriptor, options)).map_err(|error| os_error(&error))?;
        Ok(LiveSocket { sized: Mutex::new(Some(sized)), made })
    }

    /// The invitation for the peer, if this end created one.
    fn made(&self) -> Option<&[u8]> {
        self.made.as_deref()
    }

    /// The state when last sampled; ``None`` if the socket is closed.
    fn report(&self, py: Python<'_>) -> PyResult<Option<SocketReport>> {
        let report = py.detach(|| {
            let sized = self.sized.lock().unwrap_or_else(PoisonError::into_inner);
            sized.as_ref().map_or(Err(SocketError::Closed), SizedSocket::report)
        });
        match report {
            Ok(report) => Ok(Some(SocketReport::new(&report))),
            Err(SocketError::Closed) => Ok(None),
            Err(error) => Err(PyOSError::new_err(error.to_string())),
        }
    }

    /// Lifts every limit. A second call does nothing.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.sized.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}

#[cfg(target_os = "linux")]
fn attach(descriptor: i32, options: Options) -> Result<SizedSocket, AttachError> {
    SizedSocket::attach_descriptor(descriptor, options)
}

#[cfg(target_os = "linux")]
fn invite_at(descriptor: i32) -> Result<(BothEnds, Vec<u8>), AttachError> {
    let (both_ends, invitation) = BothEnds::invite_descriptor(descriptor)?;
    Ok((both_ends, invitation.to_vec()))
}

#[cfg(not(target_os = "linux"))]
fn invite_at(_descriptor: i32) -> Result<(BothEnds, Vec<u8>), AttachError> {
    Err(AttachError::Unsupported)
}

#[cfg(not(target_os = "linux"))]
fn attach(descriptor: i32, options: Options) -> Result<SizedSocket, AttachError> {
    SizedSocket::attach(&descriptor, options)
}

fn os_error(error: &AttachError) -> PyErr {
    if matches!(error, AttachError::Unsupported) {
        return PyNotImplementedError::new_err(error.to_string());
    }
    let errno = match error {
        AttachError::System { source, .. } => source.raw_os_error(),
        _ => None,
    };
    match errno {
        Some(errno) => PyOSError::new_err((errno, error.to_string())),
        None => PyOSError::new_err(error.to_string()),
    }
}

impl SocketReport {
    fn new(report: &Report) -> SocketReport {
        SocketReport {
            activity: report.activity.name(),
            is_sender: report.side == sweetspot_socket::Side::Sender,
            received: report.received.get(),
            acked: report.acked.get(),
            window: report.window.map(|window| window.get()),
            limit: report.limit.map(|limit| limit.get()),
            pacing_bps: report.pacing_rate.map(|rate| rate.bits_per_second()),
            rtt_s: report.rtt.map(|rtt| rtt.as_secs_f64()),
            rtt_min_s: report.min_rtt.map(|rtt| rtt.as_secs_f64()),
            rate_bps: report.rate.bits_per_second(),
            both_ends: report.both_ends,
            phase: report.phase.name(),
            reason: report.reason.map(|reason| reason.to_string()),
            limited_by: report.limiting_factor.name(),
            locked_buffer: match report.autotuning {
                Autotuning::Off { buffer } => Some(buffer.get()),
                Autotuning::On | Autotuning::Unknown => None,
            },
        }
    }
}
