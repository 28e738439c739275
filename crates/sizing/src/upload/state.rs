use sweetspot_units::Rate;

use super::drain::Drain;
use super::held::Held;
use super::open::Open;
use crate::{Phase, Reason};

/// Where the controller stands.
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
/// From every state the end of the transfer leads to [`State::Ended`].
#[derive(Debug)]
pub(super) enum State {
    /// Left alone until a queue stands though the rate no longer rises.
    Measuring {
        /// The rate of the last epoch.
        last: Rate,
    },
    /// Less is sent than the path delivers, to see whether the queue drains.
    Draining(Drain),
    /// Paced just below what the path delivers.
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

    /// For people.
    pub(super) fn phase(&self) -> Phase {
        match self {
            State::Measuring { .. } => Phase::Measuring,
            State::Draining(_) => Phase::Trying,
            State::Held(_) => Phase::Holding,
            State::Open(_) => Phase::Open,
            State::Ended => Phase::HandsOff,
        }
    }
}
