//! The elements of a network path as sans-IO state machines: queue, link, propagation, loss, policer, jitter.
//!
//! The simulator in virtual time and the emulator in real time use the same elements. The crate reads no clock and does
//! not touch the operating system.
//!
//! A [`Link`] serves a [`Queue`] at a rate. A [`Pipe`] delays packets after the link. Bytes in flight on the wire never
//! count as buffer. A [`Line`] is the part of a hop behind its link, with its changes over time. A [`Direction`] chains
//! random loss, policer, queue, link and line; a [`Chain`] chains several directions, one per router. A [`Fan`] behind the
//! chain gives flows different RTTs. A [`Conduit`] combines a drop-tail queue, link and pipe, for speed. A [`PathSpec`] is
//! a path as written on the command line.
//!
//! **Contract.** Time is an argument and must not go backwards between calls on one element. Before you pass in a packet
//! at time `t`, poll out every packet due at or before `t`; debug assertions check this. Every element counts the packets
//! that it received, delivered, dropped and still holds; the first count is always the sum of the others.
//!
//! # Example
//!
//! Three packets arrive at once at a buffer for two:
//!
//! ```
//! use sweetspot_path::{DropTail, Link, Packet};
//! use sweetspot_units::{Bytes, Duration, Rate, Time, Volume};
//!
//! #[derive(Debug, PartialEq)]
//! struct Numbered(u32);
//!
//! impl Packet for Numbered {
//!     fn wire_size(&self) -> Bytes {
//!         Bytes::new(1250)
//!     }
//! }
//!
//! // 1250 bytes take 1 ms at 10 Mbit/s.
//! let mut link = Link::new(Rate::from_mbit_per_second(10), DropTail::new(Volume::Packets(2)));
//! assert!(link.handle_arrival(Time::ZERO, Numbered(0)).is_ok());
//! assert!(link.handle_arrival(Time::ZERO, Numbered(1)).is_ok());
//! assert_eq!(link.handle_arrival(Time::ZERO, Numbered(2)), Err(Numbered(2)));
//!
//! let ms = |n| Time::ZERO + Duration::from_millis(n);
//! assert_eq!(link.poll_departure(ms(5), &mut |_| {}), Some((ms(1), Numbered(0))));
//! assert_eq!(link.poll_departure(ms(5), &mut |_| {}), Some((ms(2), Numbered(1))));
//! assert_eq!(link.counters().dropped, 1);
//! ```

mod chain;
mod conduit;
mod direction;
mod direction_spec;
mod fan;
mod jitter;
mod line;
mod link;
mod loss;
mod named;
mod nearest;
mod pipe;
mod propagation;
mod queue;
mod random;
mod rate_trace;
mod ring;
mod spec;
mod token_bucket;
mod trace;
mod trace_error;
mod variation;

pub use chain::Chain;
pub use conduit::{Conduit, Waits};
pub use direction::{Direction, DropReason, Dropped};
pub use direction_spec::{DirectionSpec, PolicerSpec, QueueDiscipline};
pub use fan::Fan;
pub use jitter::Jitter;
pub use line::Line;
pub use link::Link;
pub use loss::RandomLoss;
pub use named::{NAMED_PATHS, NamedPath, named_path};
pub use nearest::{did_you_mean, is_slip_of, nearest};
pub use pipe::Pipe;
pub use propagation::Propagation;
pub use queue::{
    Blue, BlueConfig, Codel, CodelConfig, Discipline, DropTail, FqCodel, FqCodelConfig, Pie,
    PieConfig, Queue, Red, RedConfig,
};
pub use random::Random;
pub use rate_trace::RateTrace;
pub use ring::Ring;
pub use spec::{PathError, PathSpec};
pub use token_bucket::{Policer, TokenBucket};
pub use trace::{DeliveryTrace, Trace};
pub use trace_error::TraceError;
pub use variation::{Change, Changes, Variation};

use sweetspot_units::Bytes;

/// A packet: anything that has a size on the wire.
pub trait Packet {
    /// The size that the link must serialise.
    fn wire_size(&self) -> Bytes;

    /// The packet's flow, for disciplines that distinguish flows (FQ-CoDel).
    fn flow(&self) -> u64 {
        0
    }

    /// Sets the mark "congestion experienced" (RFC 3168) if the packet's transport supports it. Returns whether the
    /// mark is set now; otherwise the queue drops the packet.
    fn mark_ecn(&mut self) -> bool {
        false
    }
}

/// An element's counters, in packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets passed in.
    pub received: u64,
    /// Packets that left.
    pub delivered: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets held now.
    pub queued: u64,
}

impl Counters {
    /// Whether received = delivered + dropped + queued.
    pub fn conserved(&self) -> bool {
        self.received == self.delivered + self.dropped + self.queued
    }
}
