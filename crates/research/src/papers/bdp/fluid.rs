//! The paper's closed forms of R(S), drawn over the simulated windows.

use sweetspot_theory::TheoryError;
use sweetspot_theory::path::elephants::Elephants;
use sweetspot_theory::path::saturation::{sweet_spot, throughput};
use sweetspot_theory::path::{Path, mice, unresponsive};
use sweetspot_theory::reno::pftk::Flow;
use sweetspot_units::{Bytes, Duration, Probability, Rate};

/// Section V: packets of 1000 bytes, C = 50 Mbit/s, T_m = 100 ms, A = 15 Mbit/s.
const PACKET: Bytes = Bytes::new(1000);
const CAPACITY: Rate = Rate::from_mbit_per_second(50);
const AVAILABLE: Rate = Rate::from_mbit_per_second(15);
const RTT: Duration = Duration::from_millis(100);
/// Section V-A: T_e with UDP cross traffic.
const RTT_AGAINST_UDP: Duration = Duration::from_millis(102);

/// The closed forms' results for one buffer.
#[derive(Debug, Clone, Default)]
pub(super) struct Prediction {
    /// R(S): windows in packets and rates in Mbit/s.
    pub curve: Vec<(f64, f64)>,
    /// The Maximum Feasible Throughput, Mbit/s.
    pub mft: Option<f64>,
    /// The smallest and largest best window, packets.
    pub window: Option<(f64, f64)>,
}

/// Windows up to `max` packets, close enough that straight lines between them approximate the curve.
fn windows(max: u64) -> impl Iterator<Item = u64> {
    (1..=200).map(move |i| (max * i).div_ceil(200))
}

fn mbps(rate: Rate) -> f64 {
    rate.as_f64() / 1e6
}

fn packets(bytes: Bytes) -> f64 {
    bytes.as_f64() / PACKET.as_f64()
}

/// With UDP cross traffic: equations (4) and (5), with A for C and T_e for T_m.
pub(super) fn udp(buffer: u64, max: u64) -> Result<Prediction, TheoryError> {
    let path =
        unresponsive::path(CAPACITY, CAPACITY - AVAILABLE, RTT_AGAINST_UDP, PACKET * buffer)?;
    let mut prediction = bare(&path, max)?;
    let spot = sweet_spot(&path);
    prediction.window = Some((packets(spot.low), packets(spot.high)));
    prediction.mft = Some(mbps(AVAILABLE));
    Ok(prediction)
}

fn bare(path: &Path, max: u64) -> Result<Prediction, TheoryError> {
    let point = |s: u64| Ok((s as f64, mbps(throughput(path, PACKET * s)?.rate)));
    Ok(Prediction {
        curve: windows(max).map(point).collect::<Result<_, _>>()?,
        ..Prediction::default()
    })
}

/// With elephants as cross traffic: equations (6) to (8). The curve ends at the optimum: no closed form
/// covers buffer overflow.
pub(super) fn elephants(buffer: u64, max: u64) -> Result<Prediction, TheoryError> {
    let cross = Elephants::new(CAPACITY, AVAILABLE, RTT, RTT, PACKET * buffer)?;
    let best = cross.optimum();
    let end = packets(best.socket_buffer).min(max as f64) as u64;
    let point = |s: u64| Ok((s as f64, mbps(cross.throughput(PACKET * s)?.rate)));
    Ok(Prediction {
        curve: windows(end).map(point).collect::<Result<_, _>>()?,
        mft: Some(mbps(best.rate)),
        window: Some((packets(best.socket_buffer), packets(best.socket_buffer))),
    })
}

/// Bounds of the Maximum Feasible Throughput with mice as cross traffic, Mbit/s: UDP as the lower bound and
/// elephants as the upper one (section V-C).
pub(super) fn mice_bounds(buffer: u64) -> Result<(f64, f64), TheoryError> {
    let cross = Elephants::new(CAPACITY, AVAILABLE, RTT, RTT, PACKET * buffer)?;
    let bounds = mice::bounds(&cross);
    Ok((mbps(bounds.low), mbps(bounds.high)))
}

/// On a congested path: equation (9) with the approximate formula of Padhye et al., one ACK per two segments
/// and T_0 = 4 RTT, for the path's `loss` and `rtt`.
pub(super) fn congested(
    loss: Probability,
    rtt: Duration,
    max: u64,
) -> Result<Prediction, TheoryError> {
    let flow = Flow::new(PACKET, rtt, rtt * 4, loss)?;
    let rate = |s: u64| mbps(flow.on_congested_path(PACKET * s));
    let curve = windows(max).map(|s| (s as f64, rate(s))).collect();
    Ok(Prediction { curve, mft: Some(rate(u64::from(u32::MAX))), window: None })
}
