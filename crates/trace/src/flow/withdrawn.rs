/// Bytes in flight in a part of the window that the receiver took back (RFC 7323 §2.4). The receiver drops them as they arrive,
/// so their retransmissions do not show losses on the path.
#[derive(Debug, Default)]
pub struct Withdrawn {
    from: u64,
    to: u64,
}

impl Withdrawn {
    /// Handles a right edge that moved left to `edge` after everything before `next` had been sent.
    pub fn take_back(&mut self, edge: u64, next: u64) {
        if edge < next {
            self.from = if self.from < self.to { self.from.min(edge) } else { edge };
            self.to = self.to.max(next);
        }
    }

    /// Whether the bytes from `start` to `end`, retransmitted while the window extends to `edge`, had been taken back. If they
    /// fit now, a further retransmission means a loss on the path.
    pub fn retransmitted(&mut self, start: u64, end: u64, edge: u64) -> bool {
        let taken_back = start < self.to && end > self.from;
        if taken_back && end <= edge {
            self.from = self.from.max(end);
        }
        taken_back
    }

    /// Whether some of these bytes are not acknowledged yet.
    pub fn is_open(&self, una: u64) -> bool {
        una < self.to
    }
}
