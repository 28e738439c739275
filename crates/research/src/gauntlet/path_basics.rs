/// Rate and propagation delay of a path.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathBasics {
    /// Rate, Mbit/s.
    pub mbit: f64,
    /// Two-way propagation delay, ms.
    pub rtt_ms: f64,
}

/// Seconds of cross traffic before the first transfer starts.
pub(super) const WARMUP_S: f64 = 2.0;

/// Length of a data packet on the wire, bytes.
pub(super) const PACKET_BYTES: f64 = 1500.0;
