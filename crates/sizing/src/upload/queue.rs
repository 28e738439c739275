//! The step of a trial, and the queue that a paced upload may leave.

use sweetspot_units::{Bytes, Duration, Rate};

use crate::TIMESTAMP_TICK;
use crate::model::BURST;

/// Increase of the pacing rate in a trial. On a full path, one round trip of it leaves 0.99 x 1.2 - 1 = 0.19 BDP in the buffer,
/// and a buffer of a quarter BDP holds that. (BBR tries a quarter more: draft-ietf-ccwg-bbr, ProbeBW_UP.) After a successful
/// trial the step is doubled: the path has changed by an unknown amount.
pub(super) const STEP: f64 = 0.2;

/// RTT at which Linux halves its bursts: `net.ipv4.tcp_tso_rtt_log` is 9, and 2^9 us are this long.
const BURST_HALVING_RTT: Duration = Duration::from_micros(512);

/// Two segments of Ethernet's size.
const MIN_BURST: Bytes = Bytes::new(2 * 1500);

/// The tolerated standing queue on a path with the base RTT `base` that delivers `rate`: half of a trial's queue. At least two
/// ticks, because the kernel's smoothed RTT varies by one or two. At least a burst, because a single burst makes a queue of its
/// own length.
pub(super) fn target_queue(base: Duration, rate: Rate) -> Duration {
    base.scaled(STEP / 2.0).max(TIMESTAMP_TICK * 2).max(burst(base) / rate)
}

/// The burst that Linux sends at any pacing rate on a path with the base RTT `base`: at least two segments (`tcp_min_tso_segs`).
/// On short RTTs, larger bursts save more CPU time than they cost (`tcp_tso_autosize`; kernel commit 65466904b015, Linux 5.18).
pub(super) fn burst(base: Duration) -> Bytes {
    let halvings = base.as_nanos() / BURST_HALVING_RTT.as_nanos();
    BURST.scaled(0.5_f64.powf(halvings as f64)).max(MIN_BURST)
}
