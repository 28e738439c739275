//! The order in which the two ends may send messages, and the ways in which a peer may violate the
//! protocol.

pub mod receiver;
pub mod sender;

use thiserror::Error;

use crate::MessageError;
use crate::frame::FrameError;
use crate::record::RecordError;

pub(crate) type Result<T> = std::result::Result<T, ProtocolError>;

/// How the peer violated the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// A frame is malformed.
    #[error("the other end sent {0}")]
    Frame(#[from] FrameError),
    /// A message is malformed.
    #[error("the other end sent {0}")]
    Message(#[from] MessageError),
    /// A record is malformed.
    #[error("the other end sent {0}")]
    Record(#[from] RecordError),
    /// The peer sent something that is not allowed at this stage.
    #[error("the other end sent {what} {when}")]
    OutOfOrder {
        /// The message that the peer sent.
        what: &'static str,
        /// The stage.
        when: &'static str,
    },
    /// The peer sent a piece that was not requested.
    #[error("the other end sent piece {piece} {what}")]
    Piece {
        /// The piece's number.
        piece: u32,
        /// The fault.
        what: &'static str,
    },
    /// The peer ended a file at another length than the announced one, in bytes.
    #[error("the other end did not send the {0} bytes it announced")]
    TooLittle(u64),
    /// The peer refers to an entry that is not open.
    #[error("the other end referred to entry {0}, which is not open")]
    NoEntry(u32),
}
