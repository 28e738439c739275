use super::epoch::Epoch;

/// The epochs in which losses are repaired: data behind a missing segment arrive in order at once, faster than the path carries
/// them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repairs {
    lasts: u32,
    /// Epochs without a loss until they are over.
    left: u32,
}

impl Repairs {
    /// No repair in progress; each `lasts` this many epochs after its loss.
    pub(crate) fn new(lasts: u32) -> Repairs {
        Repairs { lasts, left: 0 }
    }

    /// Whether an epoch that begins now has any.
    pub(crate) fn are_under_way(&self) -> bool {
        self.left > 0
    }

    /// An epoch ended; returns whether it lost packets or repaired a loss.
    pub(crate) fn handle_epoch(&mut self, epoch: &Epoch) -> bool {
        let repaired = epoch.losses > 0 || self.are_under_way();
        self.left = if epoch.losses > 0 { self.lasts } else { self.left.saturating_sub(1) };
        repaired
    }
}
