use sweetspot_units::Rate;

use super::drain::Drain;
use super::held::Held;
use super::open::Open;
use crate::Reason::{self, *};
use crate::SizingPhase;
use crate::transitions::Why::Reported;
use crate::transitions::{Transition, is_reported};

/// A state as the table of transitions names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Measuring,
    Draining,
    Held,
    Open,
}

/// Every transition: from where, why, and to where. Over a path that is remembered an upload begins as
/// [`State::Held`], and each state also leads to [`State::Ended`].
const TRANSITIONS: [Transition<Name>; 6] = [
    (Name::Measuring, Reported(&[RateInelastic]), Name::Draining),
    (Name::Draining, Reported(&[CapacityKnown]), Name::Held),
    (Name::Draining, Reported(&[OthersQueue]), Name::Open),
    (Name::Held, Reported(&[PathFaster]), Name::Held),
    (Name::Held, Reported(&[PathSlower, RateInelastic]), Name::Draining),
    (Name::Open, Reported(&[TrialPaid]), Name::Measuring),
];

/// The controller's state. [`TRANSITIONS`] in words:
///
/// ```text
/// Measuring  -> Draining    a queue stands, and the rate does not follow the window
/// Draining   -> Held        the path's capacity is known
/// Draining   -> Open        others keep a queue
/// Held       -> Held        the path carries more than was known
/// Held       -> Draining    the path carries less than was known
///                           a queue stands, and the rate does not follow the window
/// Open       -> Measuring   a smaller window cost no rate
/// ```
#[derive(Debug)]
pub(super) enum State {
    /// Not paced until there is a standing queue at a rate that no longer rises.
    Measuring {
        /// The rate of the last epoch.
        last: Rate,
    },
    /// Sending less than the path delivers, to test whether the queue drains.
    Draining(Drain),
    /// Paced just below the path's delivery rate.
    Held(Held),
    /// Left to congestion control.
    Open(Open),
    /// The transfer is over.
    Ended,
}

impl State {
    /// Its name; `None` at the end.
    fn name(&self) -> Option<Name> {
        Some(match self {
            State::Measuring { .. } => Name::Measuring,
            State::Draining(_) => Name::Draining,
            State::Held(_) => Name::Held,
            State::Open(_) => Name::Open,
            State::Ended => return None,
        })
    }

    /// Whether `next` may follow for that reason.
    pub(super) fn may_become(&self, next: &State, reason: Reason) -> bool {
        let (Some(from), Some(to)) = (self.name(), next.name()) else {
            return reason == Ended && matches!(next, State::Ended);
        };
        is_reported(&TRANSITIONS, from, to, reason)
    }

    /// The phase for display.
    pub(super) fn phase(&self) -> SizingPhase {
        match self {
            State::Measuring { .. } => SizingPhase::Measuring,
            State::Draining(_) => SizingPhase::Trying,
            State::Held(_) => SizingPhase::Holding,
            State::Open(_) => SizingPhase::Open,
            State::Ended => SizingPhase::HandsOff,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transitions::diagram::{assert_connected, assert_shown};

    #[test]
    fn the_diagram_is_the_table() {
        assert_shown(&TRANSITIONS, "state.rs", include_str!("state.rs"), "/// ");
    }

    #[test]
    fn every_state_is_reached_and_left() {
        assert_connected(&TRANSITIONS, Name::Measuring);
    }
}
