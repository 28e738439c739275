use sweetspot_units::{Bytes, Duration};

/// The path at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Since the emulation [started](crate::Emulation::started).
    pub at: Duration,
    /// Near to far.
    pub up: Flow,
    /// Far to near.
    pub down: Flow,
}

/// One direction at one moment. Counters run since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// In the bottleneck's buffer, the packet being sent among them.
    pub backlog: Bytes,
    /// The same in packets.
    pub backlog_packets: u64,
    /// How long the bottleneck takes to send the backlog.
    pub queue_delay: Duration,
    /// Packets dropped by the full buffer.
    pub buffer_drops: u64,
    /// Packets lost at random.
    pub random_losses: u64,
    /// Packets that arrived at the entry.
    pub arrived: u64,
    /// IP bytes released at the exit.
    pub delivered: Bytes,
}
