//! The protocol of Sweetspot's bulk transfer without its I/O.
//!
//! The crate is for programs that speak the protocol or read its output: `sweetspot-transfer` adds sockets, TLS, files
//! and threads, and the fuzz targets feed it bytes. The crate opens no socket and reads no clock; the time is an
//! argument.
//!
//! - A [`Ticket`] names a receiver and holds the secret of a transfer. A [`Session`] derives both ends' proofs from the
//!   secret and the TLS connection.
//! - Inside TLS 1.3, both directions carry [frames](frame). The connecting end opens with [`Hello`] and its proof; the
//!   listener answers with [`Welcome`](Message::Welcome) and its own. Either may be the sender.
//! - The sender makes an [`Offer`], and the receiver [accepts](Accept) it. The sender lists [entries](record), and the
//!   receiver answers each. Pieces of files then flow, each with its [hash](hash_tree), on as many connections as raise
//!   the rate. At the end the receiver sends its [`ReceiverSummary`] and the sender its [`SenderSummary`].
//! - Either end may fail with a reason at any time. [`ReceiverOrder`] and [`SenderOrder`] reject messages out of order,
//!   [`FileProgress`] rejects pieces that do not belong to a file.
//! - Text from a peer is a [`PeerText`], which can be displayed only with its control characters escaped.
//! - In parallel with TLS, [probe] packets measure the path over UDP.
//!
//! Programs that size their own sockets (`sweetspot-socket`) measure with the same packets; an [`Invitation`] has the
//! port and the key for them.
//!
//! # Example
//!
//! Decoding a frame from a stream, and checking its message against the order of the protocol:
//!
//! ```
//! use sweetspot_protocol::frame::FrameDecoder;
//! use sweetspot_protocol::{Message, ProtocolError, ReceiverOrder};
//!
//! // A sender that says "end" before it made an offer.
//! let stream = Message::End.to_frame();
//! let (mut decoder, mut order) = (FrameDecoder::default(), ReceiverOrder::default());
//! let part = decoder.next(&mut &stream[..])?.expect("a whole frame");
//! let error = order.handle(part).unwrap_err();
//! assert!(matches!(error, ProtocolError::OutOfOrder { .. }));
//! assert_eq!(error.to_string(), "the other end sent end before an offer");
//! # Ok::<(), sweetspot_protocol::frame::FrameError>(())
//! ```

pub mod clients;
mod file_progress;
pub mod frame;
pub mod hash_tree;
mod hole_runs;
mod invitation;
mod key;
mod measure_message;
mod message;
mod order;
mod peer_text;
mod piece_hashes;
mod printable;
pub mod probe;
mod probe_summary;
pub mod record;
mod relative_path;
mod role;
mod session;
mod spoken_code;
mod ticket;
mod zero_tree;

pub use file_progress::FileProgress;
pub use invitation::{
    INVITATION_BYTES, Invitation, InvitationError, Inviting, MAX_INVITATION_BYTES,
};
pub use key::{KeyError, PublicKey};
pub use measure_message::{MAX_ROUND_TRIPS, MeasureMessage};
pub use message::{
    Accept, CongestionMessage, DirectoryStatus, FileCounts, Hello, KnownPathMessage, MAX_STREAMS,
    Message, MessageError, Offer, ReceiverSummary, SenderLimit, SenderSummary,
};
pub use order::ProtocolError;
pub use order::receiver::{ReceiverOrder, SenderItem};
pub use order::sender::{ReceiverItem, SenderOrder};
pub use peer_text::PeerText;
pub use printable::{Printable, TEMP_FILE_PREFIX, is_printable, write_escaped};
pub use probe_summary::{ProbeSummary, RttSource};
pub use relative_path::{PathError, RelativePath};
pub use role::Role;
pub use session::{EXPORTER_LABEL, EXPORTER_LENGTH, Session};
pub use spoken_code::{CodeAddress, CodeError, DEFAULT_PORT, SpokenCode};
pub use ticket::{Secret, Ticket, TicketError, TicketHost, TicketProof};
pub use zero_tree::ZeroTree;

/// The version of the protocol. Both ends must speak the same one.
pub const VERSION: u32 = 8;
