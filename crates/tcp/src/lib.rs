//! TCP as sans-IO state machines: a [`Sender`] and a [`Receiver`], and the congestion controls
//! that a sender may run. Sequence numbers count full packets, as in ns-2 and in the papers;
//! packet 0 is the SYN.

mod config;
pub mod congestion;
mod receiver;
mod rtt;
mod runs;
mod scoreboard;
mod segment;
mod sender;

pub use config::{DelayedAck, ReceiverConfig, RecoveryStyle, SenderConfig};
pub use receiver::{Arrival, Received, Receiver};
pub use rtt::RttEstimator;
pub use segment::{Acknowledgement, Run, SackBlocks, Segment};
pub use sender::{RecoveryState, Sender, Statistics};
