//! The checks, one file per kind of mistake.

mod buffers;
mod device;
mod memory;
mod options;
mod programs;

pub(super) use programs::IN_PROGRAM;

use sweetspot_units::{Bytes, Duration, Rate};

use super::{Finding, PathEnd, Snapshot};

/// The path that the host should fill, and the number of connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathTarget {
    pub rate: Rate,
    pub rtt: Duration,
    pub connections: u64,
    /// The window to reach: 1.05 C T.
    pub window: Bytes,
}

impl PathTarget {
    /// The rate that a flow gains if `window` no longer caps it; `None` if none.
    pub(super) fn gain_over(&self, window: Bytes) -> Option<Rate> {
        let gain = self.rate.saturating_sub(window / self.rtt);
        (gain > Rate::ZERO).then_some(gain)
    }
}

/// All findings about `host`. Buffers can only be judged with a `target`.
pub(super) fn all(host: &Snapshot, end: PathEnd, target: Option<&PathTarget>) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(target) = target {
        buffers::check(host, end, target, &mut found);
    }
    options::check(host, end, target, &mut found);
    programs::check(host, end, target, &mut found);
    memory::check(host, end, target, &mut found);
    device::check(host, end, target, &mut found);
    found
}
