use super::climb::Climb;
use super::held::{Held, Hold};
use super::open::Open;
use super::startup::Startup;
use super::trial::Trial;
use crate::Reason::{self, *};
use crate::SizingPhase;
use crate::transitions::Why::{Reported, Within};
use crate::transitions::{Transition, has_transition, is_reported};

/// The name of a state in the table of transitions. `Opening` to `Paced` are the variants of [`Hold`] within
/// [`State::Held`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Startup,
    Opening,
    Steady,
    Probing,
    Correcting,
    Paced,
    Open,
    Trial,
    Climb,
}

/// Every transition: from where, why, and to where. Each state also leads to [`State::Ended`].
const TRANSITIONS: [Transition<Name>; 26] = [
    (Name::Startup, Reported(&[CapacityKnown]), Name::Steady),
    (Name::Startup, Reported(&[PathRemembered]), Name::Opening),
    (
        Name::Startup,
        Reported(&[CapacityUnclear, CapacityUnknown, ShortPath, ShortTransfer, CrossTrafficQueue]),
        Name::Open,
    ),
    (Name::Opening, Within("the window is the remembered one"), Name::Steady),
    (Name::Opening, Reported(&[Overflow, CrossTrafficQueue]), Name::Open),
    (Name::Steady, Within("36 epochs passed, or four without a queue"), Name::Probing),
    (Name::Steady, Within("no queue forms at the remembered window"), Name::Correcting),
    (
        Name::Steady,
        Within("losses without a queue keep congestion control below the capacity"),
        Name::Paced,
    ),
    (Name::Steady, Within("the buffer overflowed for the first time"), Name::Steady),
    (Name::Steady, Reported(&[RateFell, RandomLoss, CrossTrafficQueue, Overflow]), Name::Open),
    (Name::Probing, Within("the rate followed the step"), Name::Probing),
    (Name::Probing, Within("the rate did not follow, or a packet was lost"), Name::Steady),
    (Name::Probing, Within("no queue forms at the remembered window"), Name::Correcting),
    (Name::Probing, Reported(&[RateFell, CrossTrafficQueue, PathFaster]), Name::Open),
    (Name::Correcting, Within("a queue shows the capacity"), Name::Steady),
    (Name::Correcting, Within("a packet was lost"), Name::Correcting),
    (Name::Correcting, Reported(&[PathFaster, RandomLoss, Overflow]), Name::Open),
    (
        Name::Paced,
        Within("no loss for as long as CUBIC needs to recover, or the first excess of losses"),
        Name::Steady,
    ),
    (Name::Paced, Reported(&[RateFell, CrossTrafficQueue]), Name::Open),
    (Name::Open, Reported(&[RateInelastic]), Name::Trial),
    (Name::Open, Reported(&[RandomLoss]), Name::Startup),
    (Name::Trial, Reported(&[TrialSucceeded]), Name::Steady),
    (Name::Trial, Reported(&[TrialFailed, PathFaster]), Name::Open),
    (Name::Open, Reported(&[TryingMore]), Name::Climb),
    (Name::Climb, Reported(&[CapacityKnown]), Name::Paced),
    (Name::Climb, Reported(&[NoMore, CrossTrafficQueue]), Name::Open),
];

impl Hold {
    pub(super) fn name(&self) -> Name {
        match self {
            Hold::Opening { .. } => Name::Opening,
            Hold::Correcting => Name::Correcting,
            Hold::Steady(_) => Name::Steady,
            Hold::Probing(..) => Name::Probing,
            Hold::Paced(_) => Name::Paced,
        }
    }

    /// Whether `next` may follow this way of holding.
    pub(super) fn may_become(&self, next: &Hold) -> bool {
        has_transition(&TRANSITIONS, self.name(), next.name(), |why| matches!(why, Within(_)))
    }
}

/// The controller's state. [`TRANSITIONS`] in words:
///
/// ```text
/// Startup    -> Steady      the path's capacity is known
/// Startup    -> Opening     the path is remembered from the last transfer
/// Startup    -> Open        measurements of the capacity disagree
///                           the capacity could not be measured
///                           the round trip is too short for a limit to matter
///                           the transfer is too short to be worth measuring
///                           cross traffic keeps a queue
/// Opening    -> Steady      the window is the remembered one
/// Opening    -> Open        the bottleneck's buffer overflowed
///                           cross traffic keeps a queue
/// Steady     -> Probing     36 epochs passed, or four without a queue
/// Steady     -> Correcting  no queue forms at the remembered window
/// Steady     -> Paced       losses without a queue keep congestion control below the capacity
/// Steady     -> Steady      the buffer overflowed for the first time
/// Steady     -> Open        the rate fell while the limit was in force
///                           a packet was lost while this transfer had no queue
///                           cross traffic keeps a queue
///                           the bottleneck's buffer overflowed
/// Probing    -> Probing     the rate followed the step
/// Probing    -> Steady      the rate did not follow, or a packet was lost
/// Probing    -> Correcting  no queue forms at the remembered window
/// Probing    -> Open        the rate fell while the limit was in force
///                           cross traffic keeps a queue
///                           the path is faster than measured before
/// Correcting -> Steady      a queue shows the capacity
/// Correcting -> Correcting  a packet was lost
/// Correcting -> Open        the path is faster than measured before
///                           a packet was lost while this transfer had no queue
///                           the bottleneck's buffer overflowed
/// Paced      -> Steady      no loss for as long as CUBIC needs to recover, or the first excess of losses
/// Paced      -> Open        the rate fell while the limit was in force
///                           cross traffic keeps a queue
/// Open       -> Trial       a queue persists, and the rate does not depend on the window
/// Open       -> Startup     a packet was lost while this transfer had no queue
/// Trial      -> Steady      a smaller window did not lower the rate
/// Trial      -> Open        a smaller window lowered the rate
///                           the path is faster than measured before
/// Open       -> Climb       the path may carry more than congestion control sends
/// Climb      -> Paced       the path's capacity is known
/// Climb      -> Open        the path has no unused capacity
///                           cross traffic keeps a queue
/// ```
#[derive(Debug)]
pub(super) enum State {
    /// The capacity is being measured. Until the first train measures it, the window grows like an unlimited one.
    Startup(Startup),
    Held(Held),
    /// Left to congestion control.
    Open(Open),
    /// Held at the delivered rate, to test whether a shorter queue costs rate.
    Trial(Trial),
    /// Sending faster under BBR, step by step, to see whether the path carries more.
    Climb(Climb),
    Ended,
}

impl State {
    /// The state's name; `None` for [`State::Ended`].
    fn name(&self) -> Option<Name> {
        Some(match self {
            State::Startup(_) => Name::Startup,
            State::Held(held) => held.hold().name(),
            State::Open(_) => Name::Open,
            State::Trial(_) => Name::Trial,
            State::Climb(_) => Name::Climb,
            State::Ended => return None,
        })
    }

    /// Whether `next` may follow for this reason.
    pub(super) fn may_become(&self, next: &State, reason: Reason) -> bool {
        let (Some(from), Some(to)) = (self.name(), next.name()) else {
            return reason == Ended && matches!(next, State::Ended);
        };
        is_reported(&TRANSITIONS, from, to, reason)
    }

    pub(super) fn phase(&self) -> SizingPhase {
        match self {
            State::Startup(_) => SizingPhase::Measuring,
            // This phase needs frequent samples: data that arrive within one sample count as one flight.
            State::Held(held) if held.is_opening() => SizingPhase::Ramping,
            State::Held(_) => SizingPhase::Holding,
            State::Open(_) => SizingPhase::Open,
            State::Trial(_) => SizingPhase::Trying,
            State::Climb(_) => SizingPhase::Trying,
            State::Ended => SizingPhase::HandsOff,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transitions::diagram::{assert_connected, assert_shown};

    #[test]
    fn both_diagrams_match_the_transition_table() {
        assert_shown(&TRANSITIONS, "state.rs", include_str!("state.rs"), "/// ");
        let architecture = include_str!("../../../../ARCHITECTURE.md");
        assert_shown(&TRANSITIONS, "ARCHITECTURE.md", architecture, "");
    }

    #[test]
    fn every_state_can_be_entered_and_left() {
        assert_connected(&TRANSITIONS, Name::Startup);
    }
}
