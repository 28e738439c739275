use super::epoch::Epoch;

/// The epochs in which losses are repaired. Data behind a missing segment then become readable at once, faster than the path
/// carries them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repairs {
    lasts: u32,
    /// Loss-free epochs until all repairs are over.
    left: u32,
}

impl Repairs {
    /// No repair in progress. Each repair will last for `lasts` epochs after its loss.
    pub(crate) fn new(lasts: u32) -> Repairs {
        Repairs { lasts, left: 0 }
    }

    /// Whether repairs are in progress in an epoch that begins now.
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
