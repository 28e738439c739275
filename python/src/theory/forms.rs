//! One Python function per closed form. Arguments are numbers in base units (bytes, bit/s, seconds), strings with a unit,
//! or arrays that broadcast; results are in base units.

use pyo3::prelude::*;
use sweetspot_theory::host::frame::Framing;
use sweetspot_theory::path::elephants::Elephants;
use sweetspot_theory::path::{self, Path, saturation, unresponsive};
use sweetspot_theory::reno::morris;
use sweetspot_theory::reno::pftk::Flow;
use sweetspot_theory::router::loss_form::LossForm;
use sweetspot_theory::router::rules;
use sweetspot_theory::{Packets, TheoryError};
use sweetspot_units::{Bytes, Duration, Probability, Rate};

use super::arguments::{Argument, Dimension, apply};

macro_rules! typed {
    (Bytes, $number:expr) => {
        Bytes::from_f64($number)
    };
    (Rate, $number:expr) => {
        Rate::from_f64($number)
    };
    (Time, $number:expr) => {
        Duration::from_secs_f64($number)
    };
    (Number, $number:expr) => {
        $number
    };
}

/// Declares the functions, each with its arguments' dimensions and the number of its results, and the function that adds
/// them all to a module.
macro_rules! forms {
    ($(
        $(#[doc = $doc:literal])+
        fn $name:ident($($argument:ident: $dimension:ident),+) -> $out:literal $body:block
    )+) => {
        $(
            $(#[doc = $doc])+
            #[pyfunction]
            fn $name<'py>(
                py: Python<'py>,
                $($argument: &Bound<'py, PyAny>,)+
            ) -> PyResult<Bound<'py, PyAny>> {
                let arguments = [$(Argument {
                    name: stringify!($argument),
                    dimension: Dimension::$dimension,
                    value: $argument,
                },)+];
                apply::<_, $out>(py, arguments, |numbers| {
                    let [$($argument),+] = numbers;
                    $(let $argument = typed!($dimension, $argument);)+
                    $body
                })
            }
        )+

        /// Adds every closed form to `module`.
        pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)+
            Ok(())
        }
    };
}

forms! {
    /// R(S): average throughput (bit/s) of a bulk transfer with socket buffer S (bytes) on a path
    /// of capacity ``rate``, two-way propagation ``rtt`` and drop-tail ``buffer``, without cross
    /// traffic. SOBAS eqs (4) and (5).
    fn throughput(socket_buffer: Bytes, rate: Rate, rtt: Time, buffer: Bytes) -> 1 {
        let path = Path::new(rate, rtt, buffer)?;
        Ok([saturation::throughput(&path, socket_buffer)?.rate.as_f64()])
    }

    /// The sweet spot (low, high) in bytes: C T_m and C T_m + B_t. SOBAS section IV.
    fn sweet_spot(rate: Rate, rtt: Time, buffer: Bytes) -> 2 {
        let spot = saturation::sweet_spot(&Path::new(rate, rtt, buffer)?);
        Ok([spot.low.as_f64(), spot.high.as_f64()])
    }

    /// Throughput (bit/s) of one Reno flow limited only by its own losses: three quarters of C without a buffer, C from B_t
    /// = C T_m on. SOBAS eq. (17).
    fn congestion_limited(rate: Rate, rtt: Time, buffer: Bytes) -> 1 {
        Ok([saturation::congestion_limited(&Path::new(rate, rtt, buffer)?).as_f64()])
    }

    /// R(S) with unresponsive cross traffic of mean rate ``cross``, where T_e is the RTT before the transfer starts and
    /// ``available_buffer`` the remaining buffer. SOBAS section V-A.
    fn beside_unresponsive(
        socket_buffer: Bytes, rate: Rate, cross: Rate, exogenous_rtt: Time, available_buffer: Bytes
    ) -> 1 {
        let path = unresponsive::path(rate, cross, exogenous_rtt, available_buffer)?;
        Ok([saturation::throughput(&path, socket_buffer)?.rate.as_f64()])
    }

    /// R(S) with buffer-limited elephants as cross traffic, which have the RTT ``cross_rtt`` and leave ``available`` of the
    /// capacity. SOBAS eqs (6)-(8).
    fn beside_elephants(
        socket_buffer: Bytes, rate: Rate, available: Rate, exogenous_rtt: Time, cross_rtt: Time,
        available_buffer: Bytes
    ) -> 1 {
        let link = Elephants::new(rate, available, exogenous_rtt, cross_rtt, available_buffer)?;
        Ok([link.throughput(socket_buffer)?.rate.as_f64()])
    }

    /// The Maximum Feasible Throughput (bit/s) with buffer-limited elephants as cross traffic, and the socket buffer
    /// (bytes) that gives it. SOBAS eq. (8).
    fn elephants_optimum(
        rate: Rate, available: Rate, exogenous_rtt: Time, cross_rtt: Time, available_buffer: Bytes
    ) -> 2 {
        let link = Elephants::new(rate, available, exogenous_rtt, cross_rtt, available_buffer)?;
        let optimum = link.optimum();
        Ok([optimum.rate.as_f64(), optimum.socket_buffer.as_f64()])
    }

    /// R(S) on a path that was already congested: min(S/T, PFTK). SOBAS eq. (9).
    fn on_congested_path(
        socket_buffer: Bytes, mss: Bytes, rtt: Time, timeout: Time, loss: Number
    ) -> 1 {
        Ok([lossy(mss, rtt, timeout, loss)?.on_congested_path(socket_buffer).as_f64()])
    }

    /// Throughput (bit/s) of a flow limited by ``loss``, timeouts included. PFTK, full model, one ACK per two segments.
    fn pftk(mss: Bytes, rtt: Time, timeout: Time, loss: Number) -> 1 {
        Ok([lossy(mss, rtt, timeout, loss)?.full(None)?.as_f64()])
    }

    /// The square-root formula (bit/s): losses detected by duplicate ACKs only. PFTK eq. (20).
    fn square_root(mss: Bytes, rtt: Time, loss: Number) -> 1 {
        Ok([lossy(mss, rtt, rtt, loss)?.square_root().as_f64()])
    }

    /// The sawtooth of a Reno flow alone on its path: loss rate, period (s), mean RTT (s), mean backlog (bytes). SOBAS eqs
    /// (10)-(16).
    fn sawtooth(rate: Rate, rtt: Time, buffer: Bytes, packet: Bytes) -> 4 {
        let tooth = path::sawtooth::sawtooth(&Path::new(rate, rtt, buffer)?, packet)?;
        Ok([
            tooth.loss.get(),
            tooth.period.as_secs_f64(),
            tooth.mean_rtt.as_secs_f64(),
            tooth.mean_backlog.as_f64(),
        ])
    }

    /// The loss rate caused by ``flows`` persistent flows if path and buffer together hold ``storage`` packets. Morris
    /// 1997.
    fn morris_loss(flows: Number, storage: Number) -> 1 {
        Ok([morris::loss(flows.round() as u64, Packets::new(storage)?)?.get()])
    }

    /// p(B) = a B^-b: loss rate of a router with inputs that are not much faster than its output. Router buffer sizing eq.
    /// (8).
    fn power_law_loss(buffer_packets: Number, a: Number, b: Number) -> 1 {
        Ok([LossForm::power_law(a, b)?.loss(Packets::new(buffer_packets)?)?.get()])
    }

    /// p(B) = a exp(-b B): loss rate of a router with inputs slower than its output. Router buffer sizing eq. (14).
    fn exponential_loss(buffer_packets: Number, a: Number, b: Number) -> 1 {
        Ok([LossForm::exponential(a, b)?.loss(Packets::new(buffer_packets)?)?.get()])
    }

    /// C T / sqrt(n) (bytes): the buffer that keeps a link busy with ``flows`` unsynchronised
    /// flows. Appenzeller, Keslassy, McKeown 2004.
    fn square_root_rule(rate: Rate, rtt: Time, flows: Number) -> 1 {
        Ok([rules::square_root(rate, rtt, flows.round() as u64)?.as_f64()])
    }

    /// The payload rate (bit/s) of an Ethernet of ``rate``, fully used by packets of ``mtu`` bytes: IPv4 with timestamps,
    /// no VLAN.
    fn ethernet_goodput(rate: Rate, mtu: Bytes) -> 1 {
        Ok([Framing::COMMON.goodput(rate, mtu)?.as_f64()])
    }
}

fn lossy(mss: Bytes, rtt: Duration, timeout: Duration, loss: f64) -> Result<Flow, TheoryError> {
    let loss = Probability::new(loss).ok_or_else(|| TheoryError::OutOfDomain {
        quantity: "loss",
        given: loss.to_string(),
        wanted: "a probability, from 0 to 1",
    })?;
    Flow::new(mss, rtt, timeout, loss)
}
