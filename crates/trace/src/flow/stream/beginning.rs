/// The maximum initial window, in segments (RFC 6928).
const INITIAL_WINDOW: u64 = 10;

/// The first data of a stream, sent before any acknowledgement.
#[derive(Debug, Clone, Copy)]
pub struct Beginning {
    from: u64,
    /// The end of the data sent before the first pause.
    burst: u64,
    paused: bool,
}

impl Beginning {
    /// The beginning of a stream at `from`.
    pub fn new(from: u64) -> Beginning {
        Beginning { from, burst: from, paused: false }
    }

    /// Handles data up to `end`, sent with or without a pause before them.
    pub fn sent(&mut self, end: u64, paused: bool) {
        self.paused |= paused;
        self.burst = if self.paused { self.burst } else { end };
    }

    /// Whether the sender must have received a later acknowledgement than `una` to send up to `end`. Before the first one, a
    /// sender that paused sends at most an initial window, or the burst with which it began.
    pub fn is_over(&self, una: u64, end: u64, mss: u64) -> bool {
        self.paused && una <= self.from && end > self.burst.max(self.from + INITIAL_WINDOW * mss)
    }
}
