//! TCP endpoints as sans-IO state machines: a [`Sender`], a [`Receiver`], and the congestion
//! controls that a sender may run.
//!
//! Depending on its configuration, the crate behaves like ns-2's agents or like Linux. The
//! simulator uses it, and so can any other program that moves packets and has a clock. The crate
//! itself sends nothing and reads no clock: `now` is an argument, and segments and ACKs are values.
//! Sequence numbers count full packets, as in ns-2 and in the papers; packet 0 is the SYN.
//!
//! ```
//! use sweetspot_tcp::{Arrival, Receiver, ReceiverConfig, Run};
//! use sweetspot_units::Time;
//!
//! let config = ReceiverConfig { delayed_ack: None, sack: true, window: 100, first_window: None };
//! let mut receiver = Receiver::new(&config);
//! let sent = Time::ZERO;
//! let now = Time::from_nanos(5_000_000);
//! let packet = |number| Arrival { number, sent, congested: false, window_reduced: false };
//!
//! receiver.handle_data(now, &packet(0));
//! // Packet 1 was lost. Packet 2 causes a duplicate ACK with a SACK block (RFC 2018).
//! let ack = receiver.handle_data(now, &packet(2)).ack.expect("a gap is acknowledged at once");
//! assert_eq!(ack.next, 1);
//! assert_eq!(receiver.sack_blocks().as_slice(), [Run { start: 2, end: 3 }]);
//! ```

mod config;
pub mod congestion;
mod receiver;
mod rtt;
mod runs;
mod scoreboard;
mod segment;
mod sender;

pub use config::{DelayedAck, ReceiverConfig, RecoveryStyle, SendMemory, SenderConfig};
pub use receiver::{Arrival, Received, Receiver};
pub use rtt::RttEstimator;
pub use segment::{Acknowledgement, Run, SackBlocks, Segment};
pub use sender::{RecoveryState, Sender, Statistics};
