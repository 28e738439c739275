//! The step of a trial, and the queue that a paced upload may leave.

use sweetspot_units::Duration;

use crate::TIMESTAMP_TICK;

/// More than the pace, in a trial. In one round trip it leaves 0.99 x 1.2 - 1 = 0.19 BDP in the buffer
/// of a path that is full already, which one of a quarter bears. (BBR tries a quarter more:
/// draft-ietf-ccwg-bbr, ProbeBW_UP.) After a trial that paid it is doubled: the path has changed, by
/// an unknown amount.
pub(super) const STEP: f64 = 0.2;

/// The tolerated standing queue on a path with the base RTT `base`: half of a trial's. At least two ticks: the kernel's smoothed
/// RTT varies by one or two.
pub(super) fn target_queue(base: Duration) -> Duration {
    base.scaled(STEP / 2.0).max(TIMESTAMP_TICK * 2)
}
