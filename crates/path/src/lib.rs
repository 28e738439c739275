//! The elements of a network path as sans-IO state machines, one physical thing per file.
//!
//! They exist once and serve both the simulator and the real-time emulator:
//! a [`Link`] serves a [`Queue`] at a rate, a [`Pipe`] delays what left the link, and
//! the two never mix: bytes in flight on the wire do not count as buffer. [`Direction`] chains
//! them the way a path reads: loss, queue and link, propagation. Behind it, a [`Fan`] gives flows
//! round trips of their own.
//!
//! **Contract.** Time is an argument and must not go backwards between calls on one element.
//! Before a packet is handed in with time `t`, everything due at or before `t` must have been
//! polled out; every element says so with a debug assertion. Every element counts what it
//! received, delivered, dropped and still holds, and the first is always the sum of the others
//! (law 7).

mod conduit;
mod direction;
mod fan;
mod jitter;
mod link;
mod loss;
mod pipe;
mod propagation;
mod queue;
mod random;
mod ring;
mod spec;

pub use conduit::{Conduit, Waits};
pub use direction::{Direction, Dropped, Refusal};
pub use fan::Fan;
pub use jitter::Jitter;
pub use link::Link;
pub use loss::RandomLoss;
pub use pipe::Pipe;
pub use propagation::Propagation;
pub use queue::{
    Codel, CodelSetting, Discipline, DropTail, FqCodel, FqCodelSetting, Queue, Red, RedSetting,
};
pub use random::Random;
pub use ring::Ring;
pub use spec::{DirectionSpec, PathError, PathSpec};

use sweetspot_units::Bytes;

/// Anything that has a size on the wire.
pub trait Packet {
    /// The bytes that the link must serialise.
    fn wire_size(&self) -> Bytes;

    /// The flow it belongs to, for disciplines that tell flows apart (FQ-CoDel).
    fn flow(&self) -> u64 {
        0
    }

    /// Sets the mark "congestion experienced" (RFC 3168) where the packet's transport supports
    /// it. Whether it is set now; a packet that cannot carry it is dropped instead.
    fn mark_ecn(&mut self) -> bool {
        false
    }
}

/// What an element did so far, in packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets handed in.
    pub received: u64,
    /// Packets handed out.
    pub delivered: u64,
    /// Packets thrown away.
    pub dropped: u64,
    /// Packets held now.
    pub queued: u64,
}

impl Counters {
    /// Law 7: nothing appears, nothing vanishes.
    pub fn conserved(&self) -> bool {
        self.received == self.delivered + self.dropped + self.queued
    }
}
