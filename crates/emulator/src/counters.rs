//! The loop's counters; the certificate is made from them.

use sweetspot_units::{Bytes, Duration};

use crate::Lateness;

/// One direction's counts. Packets are IP packets, bytes are IP bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct DirectionCounters {
    /// Arrived at the path's entry.
    pub packets_in: u64,
    pub bytes_in: Bytes,
    /// Released at its exit.
    pub packets_out: u64,
    pub bytes_out: Bytes,
    /// Counts of packets that crossed the narrow hop.
    pub bytes_carried: Bytes,
    /// Dropped because the bottleneck's buffer was full.
    pub buffer_drops: u64,
    /// Lost at random, as asked.
    pub random_losses: u64,
    pub policer_drops: u64,
    /// Still on the path at the end.
    pub held: u64,
    /// Longer than the MTU although every offload is off; not let through.
    pub oversized: u64,
    /// Found no room in the ring: this process was too slow.
    pub ring_losses: u64,
    /// Lost by the kernel between a namespace and this process.
    pub cable_losses: u64,
    /// Due, but refused by the kernel.
    pub send_failures: u64,
    /// Arrivals with a stamp older than a decision already made, and the largest difference.
    pub stale_stamps: u64,
    pub stalest: Duration,
    /// Releases: how much later than due.
    pub lateness: Lateness,
    /// The bottleneck's backlog: its sum over `backlog_samples` regular samples, and its peak.
    pub backlog_sum: Bytes,
    pub backlog_samples: u64,
    pub backlog_max: Bytes,
    /// Busy periods of the bottleneck: their bytes, the time from their first to their last release, and the ideal time.
    pub backlogged_bytes: Bytes,
    pub backlogged_time: Duration,
    pub backlogged_due: Duration,
}

impl DirectionCounters {
    /// Law 7: nothing appears, nothing vanishes.
    pub fn conserved(&self) -> bool {
        let dropped = self.buffer_drops + self.random_losses + self.policer_drops;
        let gone = dropped + self.send_failures;
        self.packets_in == self.packets_out + gone + self.held
    }
}
