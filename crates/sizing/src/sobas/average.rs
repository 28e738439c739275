use sweetspot_units::{Bytes, Duration, Rate};

use super::epoch::Epoch;

/// What several epochs showed together, so that the lumps in which data arrives count once and not
/// each time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Average {
    bytes: Bytes,
    time: Duration,
    epochs: u32,
    /// The lowest and the highest round trip.
    range: Option<(Duration, Duration)>,
}

impl Average {
    /// One epoch more.
    pub(super) fn add(&mut self, epoch: &Epoch) {
        let (low, high) = self.range.unwrap_or((epoch.rtt, epoch.rtt));
        self.range = Some((low.min(epoch.rtt), high.max(epoch.highest_rtt)));
        self.bytes += epoch.rate * epoch.span;
        self.time += epoch.span;
        self.epochs += 1;
    }

    /// The lowest and the highest round trip.
    pub(super) fn range(&self) -> Option<(Duration, Duration)> {
        self.range
    }

    /// How far apart they are.
    pub(super) fn spread(&self) -> Duration {
        self.range.map_or(Duration::ZERO, |(low, high)| high.saturating_sub(low))
    }

    /// The rate, once it is that of `least` epochs.
    pub(super) fn rate(&self, least: u32) -> Option<Rate> {
        (self.epochs >= least).then(|| self.bytes / self.time)
    }
}
