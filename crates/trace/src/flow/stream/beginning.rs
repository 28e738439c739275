/// Segments that a sender begins with at most (RFC 6928).
const INITIAL_WINDOW: u64 = 10;

/// The first data of a stream, before any acknowledgement.
#[derive(Debug, Clone, Copy)]
pub struct Beginning {
    from: u64,
    /// Up to here it went without a pause.
    burst: u64,
    paused: bool,
}

impl Beginning {
    /// The first byte is `from`.
    pub fn new(from: u64) -> Beginning {
        Beginning { from, burst: from, paused: false }
    }

    /// Data up to `end` went, after a pause or not.
    pub fn sent(&mut self, end: u64, paused: bool) {
        self.paused |= paused;
        self.burst = if self.paused { self.burst } else { end };
    }

    /// Whether a sender that has heard of all before `una` alone would not send up to `end`, having paused: no more than
    /// an initial window, or than the burst with which it was seen to begin, goes before the first acknowledgement.
    pub fn is_over(&self, una: u64, end: u64, mss: u64) -> bool {
        self.paused && una <= self.from && end > self.burst.max(self.from + INITIAL_WINDOW * mss)
    }
}
