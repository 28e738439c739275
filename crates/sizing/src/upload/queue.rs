//! The step of a trial, and the queue that a paced upload may leave.

use sweetspot_units::{Bytes, Duration, Rate};

use crate::TIMESTAMP_TICK;
use crate::model::BURST;

/// More than the pace, in a trial. In one round trip it leaves 0.99 x 1.2 - 1 = 0.19 BDP in the buffer
/// of a path that is full already, which one of a quarter bears. (BBR tries a quarter more:
/// draft-ietf-ccwg-bbr, ProbeBW_UP.) After a trial that paid it is doubled: the path has changed, by
/// an unknown amount.
pub(super) const STEP: f64 = 0.2;

/// RTT that halves the bursts of Linux: `net.ipv4.tcp_tso_rtt_log` is 9, and 2^9 us are this long.
const BURST_HALVING_RTT: Duration = Duration::from_micros(512);

/// The tolerated standing queue on a path with the base RTT `base` that delivers `rate`: half of a trial's. At least two ticks: the
/// kernel's smoothed RTT varies by one or two. At least a burst: a single one makes that queue.
pub(super) fn target_queue(base: Duration, rate: Rate) -> Duration {
    base.scaled(STEP / 2.0).max(TIMESTAMP_TICK * 2).max(burst(base) / rate)
}

/// The burst that Linux sends at any pace on a path with the base RTT `base`: larger ones save more of the CPU's time than they cost
/// where the RTT is short (`tcp_tso_autosize`; kernel commit 65466904b015, Linux 5.18).
pub(super) fn burst(base: Duration) -> Bytes {
    let halvings = base.as_nanos() / BURST_HALVING_RTT.as_nanos();
    BURST.scaled(0.5_f64.powf(halvings as f64))
}
