//! Steps above the capacity of a held window: on a full path, the rate does not follow.

use sweetspot_units::Rate;

use super::held::{Held, Hold, KEEPS_EPOCHS};
use super::memory::MIN_ROOM;
use super::streaks::Streaks;
use super::{MIN_OBSERVATIONS, SETTLING_EPOCHS};
use crate::model::{MEASURING_SHARE, RESOLUTION};

/// Epochs between two steps up. A step adds [`RESOLUTION`] to the queue while it lasts. Averaged over the interval, that is as
/// much as probes add to the bytes.
fn probe_epochs() -> u32 {
    (f64::from(SETTLING_EPOCHS + KEEPS_EPOCHS) * RESOLUTION / MEASURING_SHARE).round() as u32
}

/// A step: the window is wider than the capacity needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct BandwidthProbe {
    /// The capacity before the first consecutive step.
    known: Rate,
    /// The mean rate before this step, and the factor by which the step widens the window.
    rate: Rate,
    step: f64,
    /// Number of consecutive earlier steps that the rate followed.
    pub(super) followed: u32,
}

impl Held {
    /// The rate for which the window is sized.
    pub(super) fn probed_rate(&self) -> Rate {
        match self.hold {
            Hold::Probing(_, probe) => self.capacity.scaled(probe.step),
            _ => self.capacity,
        }
    }

    /// The capacity without a step that the rate may have followed by chance. A single followed step does not count.
    pub(super) fn known(&self) -> Rate {
        match self.hold {
            Hold::Probing(_, probe) if probe.followed < MIN_OBSERVATIONS => probe.known,
            _ => self.capacity,
        }
    }

    /// Adds the rate of an epoch under a limit that binds. Periodically, and when no queue stands, the window is widened by a
    /// factor of `step`: on a full path, the rate does not follow. Returns whether the window must change.
    pub(super) fn probe_bandwidth(&mut self, rate: Rate, step: f64) -> bool {
        match &mut self.hold {
            Hold::Steady(streaks) => {
                let mean = streaks.judge(rate);
                let is_due = streaks.judged >= probe_epochs() && !self.is_shallow;
                if streaks.idle < KEEPS_EPOCHS && !is_due {
                    if streaks.judged >= probe_epochs() {
                        streaks.reset_rates();
                    }
                    return false;
                }
                if streaks.idle >= KEEPS_EPOCHS {
                    // The path carries this mean rate without a queue.
                    self.capacity = self.capacity.max(mean);
                }
                let probe = BandwidthProbe { known: self.capacity, rate: mean, step, followed: 0 };
                self.change(Hold::Probing(Streaks::default(), probe));
                true
            }
            Hold::Probing(streaks, probe) => {
                let mean = streaks.judge(rate);
                if streaks.judged < KEEPS_EPOCHS {
                    return false;
                }
                let probe = *probe;
                // The rate followed if it rose by more than half of the step.
                if mean > probe.rate.scaled((1.0 + probe.step) / 2.0) {
                    self.capacity = self.capacity.scaled(probe.step);
                    let followed = probe.followed + 1;
                    let next = (2.0 * probe.step - 1.0).min(1.0 + MIN_ROOM).max(step);
                    let probe = BandwidthProbe { rate: mean, step: next, followed, ..probe };
                    self.change(Hold::Probing(Streaks::default(), probe));
                } else {
                    self.capacity = self.known();
                    self.change(Hold::Steady(Streaks::default()));
                }
                true
            }
            Hold::Opening { .. } | Hold::Correcting | Hold::Paced(_) => false,
        }
    }
}
