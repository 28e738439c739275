//! Measures the path to a server with echoes, streams of datagrams and TCP loads, controlled over a TLS
//! connection.

mod account;
mod datagrams;
mod far_end;
mod fill;
mod near_end;
mod one_sided;

pub(crate) use account::MeasureAccounts;
pub(crate) use far_end::serve;
pub use near_end::{Measured, TcpFacts, measure};
pub use one_sided::measure_one_sided;

use sweetspot_protocol::{MeasureMessage, Message};
use sweetspot_units::{Duration, Time};

use crate::wire::frame_reader::FrameReader;
use crate::{Result, TransferError};

/// Time limit for the other end's next message, in addition to the duration of the requested step.
const WORD_TIMEOUT: Duration = Duration::from_secs(20);

/// The other end's next message about the measurement.
fn next_word(frames: &mut FrameReader, deadline: Time) -> Result<MeasureMessage> {
    match frames.opening_message(deadline)? {
        Message::Measure(word) => Ok(word),
        other => Err(unexpected(other)),
    }
}

fn unexpected(message: Message) -> TransferError {
    match message {
        Message::Failed { reason } | Message::Refuse { reason } => {
            TransferError::PeerFailed(reason)
        }
        other => {
            let (what, when) = (other.kind(), "in the middle of a measurement");
            sweetspot_protocol::ProtocolError::OutOfOrder { what, when }.into()
        }
    }
}
