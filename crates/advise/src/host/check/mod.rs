//! Checks of a host's settings, one file per kind of mistake.

mod buffers;
mod device;
mod memory;
mod options;
mod programs;

pub(super) use programs::IN_PROGRAM;

use sweetspot_units::Rate;

use super::target::PathTarget;
use super::{Finding, PathEnd, Snapshot};

/// All findings about `host`. Without a `target`, buffers cannot be judged.
pub(super) fn all(host: &Snapshot, end: PathEnd, target: Option<&PathTarget>) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(target) = target {
        buffers::check(host, end, target, &mut found);
        if let Some(lost) = memory::lost(host, end, target) {
            // Larger buffers gain no more than the memory allows.
            found.retain_mut(|finding| {
                let gain = finding.gain.unwrap_or_default().saturating_sub(lost);
                finding.gain = Some(gain);
                gain > Rate::ZERO
            });
        }
    }
    options::check(host, end, target, &mut found);
    programs::check(host, end, target, &mut found);
    memory::check(host, end, target, &mut found);
    device::check(host, end, target, &mut found);
    found
}
