//! The origin of a failure: this end, the peer, its program, or the path.

use super::TransferError;

impl TransferError {
    /// Whether the peer refused the transfer, or everything in it.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            TransferError::Refused(_) | TransferError::NothingMoved { by_peer: true, .. }
        )
    }

    /// Whether the peer needs no message: it gave a reason itself, or has disconnected.
    pub fn is_caused_by_peer(&self) -> bool {
        self.is_refusal()
            || matches!(
                self,
                TransferError::PeerGone { .. }
                    | TransferError::Silent { .. }
                    | TransferError::TooSlow(_)
                    | TransferError::PeerFailed(_)
            )
    }

    /// Whether this end failed or the peer broke the protocol, so that another name or option would not
    /// help.
    pub(crate) fn is_fault(&self) -> bool {
        matches!(
            self,
            TransferError::System { .. }
                | TransferError::State { .. }
                | TransferError::Protocol { .. }
                | TransferError::Stalled(_)
        )
    }

    /// Whether an argument of this end's user is wrong, so that the same call never succeeds.
    pub fn is_wrong_usage(&self) -> bool {
        matches!(
            self,
            TransferError::NothingToSend(_)
                | TransferError::SameName(_)
                | TransferError::Pattern { .. }
                | TransferError::Sizing(_)
                | TransferError::Congestion { by_peer: false, .. }
        )
    }

    /// The same error, for a congestion control that the receiver asked for.
    pub(crate) fn requested_by_peer(self) -> TransferError {
        match self {
            TransferError::Congestion { name, source, hint, .. } => {
                TransferError::Congestion { name, by_peer: true, source, hint }
            }
            other => other,
        }
    }

    /// Whether the path or the peer failed, so that the transfer may go on over a new connection.
    pub fn is_of_the_path(&self) -> bool {
        matches!(
            self,
            TransferError::PeerGone { .. }
                | TransferError::Silent { .. }
                | TransferError::TooSlow(_)
                | TransferError::Unreachable { .. }
                | TransferError::Tls { .. }
        )
    }

    /// Whether the other end's program ended or was stopped, and its ticket with it: a new program with a
    /// new ticket may resume.
    pub fn is_of_the_program(&self) -> bool {
        match self {
            TransferError::Gone(_) => true,
            TransferError::PeerFailed(reason) => reason.raw() == TransferError::Stopped.to_string(),
            _ => false,
        }
    }
}
