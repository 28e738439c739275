//! Cross traffic by the kernel's own TCP and UDP, at as little CPU as it can be had: one thread
//! per side, no copies of what is received, one buffer for all that is sent.
//!
//! Sources open connections, write and finish; sinks read and throw away, and answer the end of
//! a transfer with a reset, so that no connection lingers on either side. A source takes that
//! reset for the last ACK, with which it travels.

mod connection;
mod node;
mod random;
mod source;
mod totals;

pub(crate) use node::{NodeConfig, TrafficNode};
pub(crate) use totals::LoadTotals;
