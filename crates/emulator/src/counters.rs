//! The loop's counters, from which the certificate is made.

use sweetspot_units::{Bytes, Duration};

use crate::Lateness;

/// One direction's counts. Packets are IP packets, bytes are IP bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct DirectionCounters {
    /// Packets that arrived at the path's entry.
    pub packets_in: u64,
    pub bytes_in: Bytes,
    /// Packets released at the path's exit.
    pub packets_out: u64,
    pub bytes_out: Bytes,
    /// Bytes of packets that crossed the narrow hop.
    pub bytes_carried: Bytes,
    /// Packets dropped by the bottleneck's full buffer.
    pub buffer_drops: u64,
    /// Packets lost at random, as configured.
    pub random_losses: u64,
    pub policer_drops: u64,
    /// Packets still on the path at the end.
    pub held: u64,
    /// Packets dropped because they exceed the MTU, although all offloads are off.
    pub oversized: u64,
    /// Packets that did not fit into the ring, because this process was too slow.
    pub ring_losses: u64,
    /// Packets that the kernel lost between a namespace and this process.
    pub cable_losses: u64,
    /// Packets that were due, but that the kernel rejected.
    pub send_failures: u64,
    /// Arrivals with a timestamp older than a decision already made, and the maximum difference.
    pub stale_stamps: u64,
    pub stalest: Duration,
    /// How late packets were released.
    pub lateness: Lateness,
    /// The bottleneck's backlog: the sum over `backlog_samples` regular samples, and the maximum.
    pub backlog_sum: Bytes,
    pub backlog_samples: u64,
    pub backlog_max: Bytes,
    /// Busy periods of the bottleneck: their bytes, the time from the first to the last release, and the ideal time.
    pub backlogged_bytes: Bytes,
    pub backlogged_time: Duration,
    pub backlogged_due: Duration,
}

impl DirectionCounters {
    /// Conservation: no packet appears or vanishes.
    pub fn conserved(&self) -> bool {
        let dropped = self.buffer_drops + self.random_losses + self.policer_drops;
        let lost = dropped + self.send_failures;
        self.packets_in == self.packets_out + lost + self.held
    }
}
