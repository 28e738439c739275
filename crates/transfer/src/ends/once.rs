//! The state of the only transfer of a server with `once`.

use sweetspot_control::TransferSummary;
use sweetspot_units::Time;

use crate::{Result, TransferError};

#[derive(Debug, Default)]
pub(crate) enum OnceState {
    /// No transfer has been admitted yet.
    #[default]
    Free,
    /// The transfer of this name is running over this connection.
    Running {
        transfer: String,
        connection: u64,
    },
    /// The transfer's path broke with `error`, in session `number`. It may resume over a new connection until `until`.
    Waiting {
        number: u64,
        until: Time,
        error: TransferError,
    },
    Over(Box<Result<TransferSummary>>),
}

impl OnceState {
    /// Whether the server accepts this transfer: the first one, or the same one over a new connection. A broken transfer
    /// may resume under another name: restarting the program with the same ticket begins a new transfer.
    pub fn takes(&mut self, transfer: &str, connection: u64) -> bool {
        let free = match self {
            OnceState::Free | OnceState::Waiting { .. } => true,
            OnceState::Running { transfer: first, .. } => first == transfer,
            OnceState::Over(_) => false,
        };
        if free {
            *self = OnceState::Running { transfer: transfer.to_owned(), connection };
        }
        free
    }

    /// Whether the transfer has moved to a newer connection than this one, so that this one's errors do not matter.
    pub fn is_superseded(&self, connection: u64) -> bool {
        match self {
            OnceState::Running { connection: newest, .. } => *newest != connection,
            OnceState::Waiting { .. } => true,
            OnceState::Free | OnceState::Over(_) => false,
        }
    }

    /// Notes that the path broke in session `number`.
    pub fn wait(&mut self, number: u64, until: Time, error: TransferError) {
        if let OnceState::Running { .. } = self {
            *self = OnceState::Waiting { number, until, error };
        }
    }

    /// Frees the server for another transfer: this one was refused, or was a dry run.
    pub fn free(&mut self) {
        if let OnceState::Running { .. } = self {
            *self = OnceState::Free;
        }
    }

    /// The time at which [`OnceState::give_up`] must be called.
    pub fn due(&self) -> Time {
        match self {
            OnceState::Waiting { until, .. } => *until,
            _ => Time::MAX,
        }
    }

    /// Ends a transfer that did not resume in time. Returns the number of its last session, and its error.
    pub fn give_up(&mut self, now: Time) -> Option<(u64, &Result<TransferSummary>)> {
        if self.due() > now {
            return None;
        }
        match std::mem::take(self) {
            OnceState::Waiting { number, error, .. } => {
                self.end(Err(error));
                let OnceState::Over(result) = self else { return None };
                Some((number, result))
            }
            other => {
                *self = other;
                None
            }
        }
    }

    /// Notes the transfer's `result`, unless it has one already.
    pub fn end(&mut self, result: Result<TransferSummary>) {
        if !matches!(self, OnceState::Over(_)) {
            *self = OnceState::Over(Box::new(result));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken() -> TransferError {
        TransferError::TooSlow("peer".into())
    }

    #[test]
    fn a_superseded_connection_does_not_end_the_transfer() {
        let mut state = OnceState::default();
        assert!(state.takes("a", 1) && !state.takes("b", 2));
        // The client noticed first that the path broke.
        assert!(state.takes("a", 3));
        assert!(state.is_superseded(1) && !state.is_superseded(3));
        assert_eq!(state.due(), Time::MAX);
        // The new connection breaks, too. Only then does the server wait for another.
        state.wait(2, Time::from_nanos(7), broken());
        assert!(state.is_superseded(1));
        assert!(state.give_up(Time::from_nanos(6)).is_none());
        // The program was restarted: the ticket's holder begins another transfer.
        assert!(state.takes("b", 4) && !state.takes("a", 5));
        assert!(state.give_up(Time::from_nanos(8)).is_none(), "it came back");
    }

    #[test]
    fn an_abandoned_transfer_ends_under_its_last_session_number() {
        let mut state = OnceState::default();
        assert!(state.takes("a", 1));
        state.wait(5, Time::from_nanos(7), broken());
        let (number, result) = state.give_up(Time::from_nanos(7)).expect("nobody came");
        assert_eq!((number, result.is_err()), (5, true));
        assert!(!state.takes("a", 2));
        state.end(Err(TransferError::Interrupted));
        let OnceState::Over(first) = state else { panic!("it is over") };
        assert!(matches!(*first, Err(TransferError::TooSlow(_))), "the first counts");
    }
}
