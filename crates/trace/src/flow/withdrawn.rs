/// Bytes under way in a part of the window that the receiver took back (RFC 7323 §2.4). It drops them as they arrive, so that
/// their retransmissions are its own, and no loss of the path.
#[derive(Debug, Default)]
pub struct Withdrawn {
    from: u64,
    to: u64,
}

impl Withdrawn {
    /// The right edge moved left to `edge` after everything before `next` was sent.
    pub fn take_back(&mut self, edge: u64, next: u64) {
        if edge < next {
            self.from = if self.from < self.to { self.from.min(edge) } else { edge };
            self.to = self.to.max(next);
        }
    }

    /// Whether the bytes from `start` to `end`, retransmitted while the window reaches to `edge`, had been taken back. Those
    /// that fit now can only be lost on the path.
    pub fn retransmitted(&mut self, start: u64, end: u64, edge: u64) -> bool {
        let taken_back = start < self.to && end > self.from;
        if taken_back && end <= edge {
            self.from = self.from.max(end);
        }
        taken_back
    }

    /// Whether some of it is not acknowledged yet.
    pub fn is_open(&self, una: u64) -> bool {
        una < self.to
    }
}
