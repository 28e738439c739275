/// One window and its result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowTrial {
    /// Packets.
    pub window: u64,
    /// Goodput, bit/s.
    pub rate_bps: f64,
    /// Whether the bottleneck dropped nothing.
    pub lossless: bool,
}

impl WindowTrial {
    /// Whether this window overflows the buffer and the smaller one of `below` did not. Without loss, more window never lowers
    /// goodput: if it does, the loss came before the measured time.
    pub(super) fn overflows(&self, below: &WindowTrial, tolerance: f64) -> bool {
        !self.lossless || self.rate_bps < below.rate_bps * (1.0 - tolerance)
    }
}
