//! Cross traffic with the kernel's TCP and UDP at low CPU cost: one thread per side, no copies of
//! received data, one buffer for all sent data.
//!
//! Sources open connections, write and finish; sinks read and discard, and answer the end of a
//! transfer with a reset, so no connection lingers on either side. A source treats that reset as
//! the last ACK, because both arrive together.

mod connection;
mod node;
mod random;
mod source;
mod totals;

pub(crate) use node::{NodeConfig, TrafficNode};
pub(crate) use totals::LoadTotals;
