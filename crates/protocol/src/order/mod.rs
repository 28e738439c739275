//! The order in which the two ends may send messages, and the ways in which a peer may violate
//! it.

pub mod receiver;
pub mod sender;

use thiserror::Error;

use crate::MessageError;
use crate::frame::FrameError;
use crate::record::RecordError;

pub(crate) type Result<T> = std::result::Result<T, ProtocolError>;

/// How the peer broke the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// Its frame is malformed.
    #[error("the other end sent {0}")]
    Frame(#[from] FrameError),
    /// Its message is malformed.
    #[error("the other end sent {0}")]
    Message(#[from] MessageError),
    /// Its record is malformed.
    #[error("the other end sent {0}")]
    Record(#[from] RecordError),
    /// It sent something that is not allowed at this stage.
    #[error("the other end sent {what} {when}")]
    OutOfOrder {
        /// The message that it sent.
        what: &'static str,
        /// The stage.
        when: &'static str,
    },
    /// It sent a piece that was not asked for.
    #[error("the other end sent piece {piece} {what}")]
    Piece {
        /// The piece's number.
        piece: u32,
        /// The fault.
        what: &'static str,
    },
    /// It ended a file at another length than it announced, bytes.
    #[error("the other end did not send the {0} bytes it announced")]
    TooLittle(u64),
    /// It speaks of an entry that is not open.
    #[error("the other end referred to entry {0}, which is not open")]
    NoEntry(u32),
}
