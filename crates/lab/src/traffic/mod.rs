//! Cross traffic by the kernel's TCP and UDP at little CPU: one thread per side, received data is
//! not copied, one buffer for all sent data.
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
