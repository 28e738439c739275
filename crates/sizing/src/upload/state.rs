use sweetspot_units::Rate;

use super::drain::Drain;
use super::held::HeldUpload;
use super::open::OpenUpload;
use super::yielding::YieldingUpload;
use crate::Reason::{self, *};
use crate::SizingPhase;
use crate::transitions::Why::Reported;
use crate::transitions::{Transition, is_reported};

/// A state as the table of transitions names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PacingName {
    Measuring,
    Draining,
    Held,
    Yielding,
    Open,
}

/// Every transition: from where, why, and to where. Over a path that is remembered an upload begins as
/// [`PacingState::Held`], and each state also leads to [`PacingState::Ended`].
const TRANSITIONS: [Transition<PacingName>; 8] = [
    (PacingName::Measuring, Reported(&[RateInelastic]), PacingName::Draining),
    (PacingName::Draining, Reported(&[CapacityKnown]), PacingName::Held),
    (PacingName::Draining, Reported(&[CrossTrafficQueue]), PacingName::Open),
    (PacingName::Draining, Reported(&[CrossTrafficQueue]), PacingName::Yielding),
    (PacingName::Held, Reported(&[PathFaster]), PacingName::Held),
    (PacingName::Held, Reported(&[PathSlower, RateInelastic]), PacingName::Draining),
    (PacingName::Yielding, Reported(&[QueueGone]), PacingName::Held),
    (PacingName::Open, Reported(&[TrialSucceeded]), PacingName::Measuring),
];

/// The controller's state. [`TRANSITIONS`] in words:
///
/// ```text
/// Measuring  -> Draining    a queue persists, and the rate does not depend on the window
/// Draining   -> Held        the path's capacity is known
/// Draining   -> Open        cross traffic keeps a queue
/// Draining   -> Yielding    cross traffic keeps a queue
/// Held       -> Held        the path is faster than measured before
/// Held       -> Draining    the path is slower than measured before
///                           a queue persists, and the rate does not depend on the window
/// Yielding   -> Held        the queue of cross traffic is gone
/// Open       -> Measuring   a smaller window did not lower the rate
/// ```
#[derive(Debug)]
pub(super) enum PacingState {
    /// Not paced until there is a standing queue at a rate that no longer rises.
    Measuring {
        /// The rate of the last epoch.
        last: Rate,
    },
    /// Sending less than the path delivers, to test whether the queue drains.
    Draining(Drain),
    /// Paced just below the path's delivery rate.
    Held(HeldUpload),
    /// Paced ever slower, because cross traffic keeps a queue.
    Yielding(YieldingUpload),
    /// Left to congestion control.
    Open(OpenUpload),
    Ended,
}

impl PacingState {
    /// The state's name; `None` for [`PacingState::Ended`].
    fn name(&self) -> Option<PacingName> {
        Some(match self {
            PacingState::Measuring { .. } => PacingName::Measuring,
            PacingState::Draining(_) => PacingName::Draining,
            PacingState::Held(_) => PacingName::Held,
            PacingState::Yielding(_) => PacingName::Yielding,
            PacingState::Open(_) => PacingName::Open,
            PacingState::Ended => return None,
        })
    }

    /// Whether `next` may follow for this reason.
    pub(super) fn may_become(&self, next: &PacingState, reason: Reason) -> bool {
        let (Some(from), Some(to)) = (self.name(), next.name()) else {
            return reason == Ended && matches!(next, PacingState::Ended);
        };
        is_reported(&TRANSITIONS, from, to, reason)
    }

    pub(super) fn phase(&self) -> SizingPhase {
        match self {
            PacingState::Measuring { .. } => SizingPhase::Measuring,
            PacingState::Draining(_) => SizingPhase::Trying,
            PacingState::Held(_) | PacingState::Yielding(_) => SizingPhase::Holding,
            PacingState::Open(_) => SizingPhase::Open,
            PacingState::Ended => SizingPhase::HandsOff,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transitions::diagram::{assert_connected, assert_shown};

    #[test]
    fn the_diagram_matches_the_transition_table() {
        assert_shown(&TRANSITIONS, "state.rs", include_str!("state.rs"), "/// ");
    }

    #[test]
    fn every_state_can_be_entered_and_left() {
        assert_connected(&TRANSITIONS, PacingName::Measuring);
    }
}
