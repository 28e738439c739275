use sweetspot_units::{Bytes, Duration};

/// The state of the path at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathSample {
    /// The time since the emulation [started](crate::Emulation::started).
    pub at: Duration,
    /// From near to far.
    pub up: DirectionSample,
    /// From far to near.
    pub down: DirectionSample,
}

/// The state of one direction at one moment. Counters run from the start of the emulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectionSample {
    /// Bytes in the bottleneck's buffer, including the packet being sent.
    pub backlog: Bytes,
    /// Packets in the bottleneck's buffer, including the packet being sent.
    pub backlog_packets: u64,
    /// Time that the bottleneck takes to send the backlog.
    pub queue_delay: Duration,
    /// Packets dropped by the full buffer.
    pub buffer_drops: u64,
    /// Packets lost at random.
    pub random_losses: u64,
    /// Packets dropped by the policer.
    pub policer_drops: u64,
    /// Packets that arrived at the entry.
    pub arrived: u64,
    /// IP bytes released at the exit, counting only packets that crossed the narrow hop.
    pub delivered: Bytes,
}

impl DirectionSample {
    /// Packets dropped on the path so far, for any reason.
    pub fn dropped(&self) -> u64 {
        self.buffer_drops + self.random_losses + self.policer_drops
    }
}
