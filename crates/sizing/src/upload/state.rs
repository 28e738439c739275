use sweetspot_units::Rate;

use super::drain::Drain;
use super::held::Held;
use super::open::Open;
use crate::{Reason, SizingPhase};

/// The controller's state.
///
/// ```text
///             rate is inelastic              capacity known
///  Measuring ───────────────────▶ Draining ─────────────────▶ Held ──┐
///      ▲                          │     ▲                     │  ▲   │ faster path
///      │ trial paid               │     └─────────────────────┘  └───┘
///      └─────────────── Open ◀────┘       slower path,
///                       others' queue     rate is inelastic
/// ```
///
/// Over a path that is remembered it begins as [`State::Held`]. From every state the end of the transfer leads to [`State::Ended`].
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
    /// Whether the diagram has an edge from here to `next` for that reason.
    pub(super) fn may_become(&self, next: &State, reason: Reason) -> bool {
        use Reason::{
            CapacityKnown, OthersQueue, PathFaster, PathSlower, RateInelastic, TrialPaid,
        };
        match (self, next) {
            (_, State::Ended) => reason == Reason::Ended,
            (State::Measuring { .. }, State::Draining(_)) => reason == RateInelastic,
            (State::Draining(_), State::Held(_)) => reason == CapacityKnown,
            (State::Draining(_), State::Open(_)) => reason == OthersQueue,
            (State::Held(_), State::Draining(_)) => matches!(reason, PathSlower | RateInelastic),
            (State::Held(_), State::Held(_)) => reason == PathFaster,
            (State::Open(_), State::Measuring { .. }) => reason == TrialPaid,
            _ => false,
        }
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
