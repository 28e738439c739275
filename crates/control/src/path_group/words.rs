use sweetspot_sizing::{EventKind, Reason, SizingPhase};

use super::PathGroup;
use crate::event::TuneEventKind;

impl PathGroup {
    /// Whether an event of this kind is reported. A limit that never held or reduced the window has nothing to release: it only
    /// grows on.
    pub(super) fn reports(&mut self, kind: TuneEventKind) -> bool {
        if self.is_decided || kind == TuneEventKind::LetGo && !self.is_bound {
            return false;
        }
        self.is_bound = kind.reduces() || self.is_bound && kind != TuneEventKind::LetGo;
        self.is_decided = self.is_dry_run && kind.reduces();
        true
    }
}

/// The event for users, with its reason in words; `None` for events that are not reported.
pub(super) fn words(kind: &EventKind) -> Option<(TuneEventKind, String)> {
    match kind {
        EventKind::Entered { phase, reason } => match phase {
            SizingPhase::Holding if *reason == Reason::CrossTrafficQueue => {
                Some((TuneEventKind::Yielded, reason.to_string()))
            }
            SizingPhase::Holding => Some((TuneEventKind::Held, reason.to_string())),
            SizingPhase::Ramping if *reason == Reason::QueueGone => {
                Some((TuneEventKind::Reopened, reason.to_string()))
            }
            SizingPhase::Open => Some((TuneEventKind::LetGo, reason.to_string())),
            SizingPhase::Trying => {
                Some((TuneEventKind::Tightened, format!("trial of a smaller window: {reason}")))
            }
            SizingPhase::HandsOff
            | SizingPhase::Measuring
            | SizingPhase::Ramping
            | SizingPhase::Congested => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phase_changes_are_reported_with_their_reason() {
        let entered = |phase, reason| words(&EventKind::Entered { phase, reason });
        let held = entered(SizingPhase::Holding, Reason::CapacityKnown);
        assert_eq!(held, Some((TuneEventKind::Held, "the path's capacity is known".to_owned())));
        let (kind, why) = entered(SizingPhase::Trying, Reason::RateInelastic).unwrap();
        assert_eq!(kind, TuneEventKind::Tightened);
        assert!(why.starts_with("trial of a smaller window: a queue persists"), "{why}");
        assert_eq!(
            entered(SizingPhase::Open, Reason::TrialFailed).unwrap().0,
            TuneEventKind::LetGo
        );
        let yielded = entered(SizingPhase::Holding, Reason::CrossTrafficQueue);
        let why = "cross traffic keeps a queue".to_owned();
        assert_eq!(yielded, Some((TuneEventKind::Yielded, why)));
        let grows = entered(SizingPhase::Ramping, Reason::QueueGone).unwrap();
        assert_eq!(grows.0, TuneEventKind::Reopened);
        assert_eq!(entered(SizingPhase::HandsOff, Reason::Ended), None);
        assert_eq!(words(&EventKind::Lifted), None);
    }
}
