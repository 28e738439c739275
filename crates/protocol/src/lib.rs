//! The protocol of Sweetspot's bulk transfer without its I/O.
//!
//! The crate is for whoever speaks the protocol or reads what it says: `sweetspot-transfer` puts sockets,
//! TLS, files and threads around it, the fuzz targets feed it bytes. It opens no socket and reads no clock;
//! the time is an argument.
//!
//! - A [`Ticket`] names a receiver and holds the secret of a transfer. A [`Session`] derives from the secret
//!   and the TLS connection what both ends prove to each other.
//! - Inside TLS 1.3 both directions carry [frames](frame). The sender opens with [`Hello`] and its proof; the
//!   receiver answers with [`Accept`] and its own proof, or refuses. Then content flows one way and steering
//!   the other, until the sender ends with the content's hash, the receiver answers with its
//!   [`ReceiverSummary`] and the sender with its [`SenderSummary`]. Either end may fail with a reason at any
//!   time. [`ReceiverOrder`] and [`SenderOrder`] refuse what comes out of order.
//! - Beside TLS, [probe] packets measure the path over UDP.
//! - [`ControlLoop`] runs a sizing controller at the receiver. What it wants done comes out as
//!   [`TransferEffect`]s.
//! - [`TransferSummary`] is what `--json` prints, [`series`] what `--series` writes.
//!
//! # Example
//!
//! A frame is cut out of a stream and its message checked against the order of the protocol:
//!
//! ```
//! use sweetspot_protocol::frame::FrameDecoder;
//! use sweetspot_protocol::{Message, ProtocolError, ReceiverOrder};
//!
//! // A sender that says "end" before it said hello.
//! let stream = Message::End { hash: "00".into() }.to_frame();
//! let (mut decoder, mut order) = (FrameDecoder::default(), ReceiverOrder::default());
//! let part = decoder.next(&mut &stream[..])?.expect("a whole frame");
//! let error = order.handle(part).unwrap_err();
//! assert!(matches!(error, ProtocolError::OutOfOrder { .. }));
//! assert_eq!(error.to_string(), "the other end sent end before a hello");
//! # Ok::<(), sweetspot_protocol::frame::FrameError>(())
//! ```

mod control_loop;
mod file_name;
pub mod frame;
mod message;
mod order;
pub mod probe;
mod rtt_histogram;
pub mod series;
mod session;
mod ticket;
mod transfer_summary;

pub use control_loop::{ControlLoop, ROW_INTERVAL, ReceiverMeasurements, TransferEffect};
pub use file_name::{FileName, NameError, Printable, TEMP_FILE_PREFIX};
pub use message::{
    Accept, CongestionMessage, Hello, KnownPathMessage, Message, MessageError, ReceiverSummary,
    SenderSummary,
};
pub use order::{ProtocolError, ReceiverOrder, SenderItem, SenderOrder};
pub use session::{EXPORTER_LABEL, EXPORTER_LENGTH, Session};
pub use ticket::{Secret, Ticket, TicketError, TicketHost};
pub use transfer_summary::{OwnAccount, ProbeSummary, Role, RttSource, TransferSummary};

/// The version of the protocol. Both ends must speak the same one.
pub const VERSION: u32 = 3;
