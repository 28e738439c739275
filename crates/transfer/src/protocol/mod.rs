//! The protocol without its I/O: frames, messages, proofs, and the order in which they may come.
//!
//! Inside TLS 1.3 both directions carry [frames](frame). The sender opens with [`Hello`] and its
//! proof that it knows the ticket's secret; the receiver answers with [`Accept`] and its own
//! proof, or with a refusal. Then content flows one way and steering the other, until the sender
//! ends with the content's hash, the receiver gives its summary, and the sender closes with its
//! own numbers. Either may fail with a reason at any time.

pub mod frame;
mod message;
mod order;
mod proof;

pub use message::{
    Accept, CongestionMessage, Hello, KnownPathMessage, Message, MessageError, ReceiverSummary,
    SenderSummary,
};
pub use order::{Arrival, ProtocolError, ReceiverOrder, SenderOrder};
pub use proof::{EXPORTER_LABEL, EXPORTER_LENGTH, Session};

/// The version both ends must speak.
pub const VERSION: u32 = 3;
