/// One window and its result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowTrial {
    /// Window, packets.
    pub window: u64,
    /// Goodput, bit/s.
    pub rate_bps: f64,
    /// Whether the bottleneck dropped no packet.
    pub lossless: bool,
}

impl WindowTrial {
    /// Whether this window overflows the buffer and the smaller window of `below` did not. Without loss, a larger window never
    /// lowers goodput; if goodput is lower, the loss came before the measured time.
    pub(super) fn overflows(&self, below: &WindowTrial, tolerance: f64) -> bool {
        !self.lossless || self.rate_bps < below.rate_bps * (1.0 - tolerance)
    }
}
