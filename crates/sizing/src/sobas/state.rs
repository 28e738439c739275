use super::held::Held;
use super::open::Open;
use super::startup::Startup;
use super::trial::Trial;
use crate::{Reason, SizingPhase};

/// The controller's state.
///
/// ```text
///        capacity known or remembered     rate fell, loss, others' queue, faster path
///  Startup ───────────────────▶ Held ─────────────────────────────────────▶ Open
///     │                          ▲                                          │  ▲
///     │ unclear, unknown,        │ trial paid             rate is inelastic │  │ trial
///     │ short path or transfer   └─────────────────────── Trial ◀──────────┘  │ failed, faster path
///     └──────────────────────────────────────────────────────│────────────────┘
/// ```
///
/// From every state the end of the transfer leads to [`State::Ended`].
#[derive(Debug)]
pub(super) enum State {
    /// The capacity is being measured; the window is Linux's own first one.
    Startup(Startup),
    /// Held at the capacity.
    Held(Held),
    /// Left to congestion control.
    Open(Open),
    /// Held at the delivered rate, to test whether a shorter queue costs rate.
    Trial(Trial),
    /// The transfer is over.
    Ended,
}

impl State {
    /// Whether the diagram has an edge from here to `next` for that reason.
    pub(super) fn may_become(&self, next: &State, reason: Reason) -> bool {
        use Reason::{
            CapacityKnown, CapacityUnclear, CapacityUnknown, OthersQueue, Overflow, PathFaster,
            PathRemembered, RandomLoss, RateFell, RateInelastic, ShortPath, ShortTransfer,
            TrialFailed, TrialPaid,
        };
        match (self, next) {
            (_, State::Ended) => reason == Reason::Ended,
            (State::Startup(_), State::Held(_)) => matches!(reason, CapacityKnown | PathRemembered),
            (State::Startup(_), State::Open(_)) => {
                matches!(
                    reason,
                    CapacityUnclear | CapacityUnknown | ShortPath | ShortTransfer | OthersQueue
                )
            }
            (State::Held(_), State::Open(_)) => {
                matches!(reason, RateFell | RandomLoss | OthersQueue | PathFaster | Overflow)
            }
            (State::Open(_), State::Startup(_)) => reason == RandomLoss,
            (State::Open(_), State::Trial(_)) => reason == RateInelastic,
            (State::Trial(_), State::Held(_)) => reason == TrialPaid,
            (State::Trial(_), State::Open(_)) => matches!(reason, TrialFailed | PathFaster),
            _ => false,
        }
    }

    /// The phase for display.
    pub(super) fn phase(&self) -> SizingPhase {
        match self {
            State::Startup(_) => SizingPhase::Measuring,
            // It must be looked at closely: a flight is counted whole if it comes in one look.
            State::Held(held) if held.is_opening() => SizingPhase::Ramping,
            State::Held(_) => SizingPhase::Holding,
            State::Open(_) => SizingPhase::Open,
            State::Trial(_) => SizingPhase::Trying,
            State::Ended => SizingPhase::HandsOff,
        }
    }
}
