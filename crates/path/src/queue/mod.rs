//! Queue disciplines: which packet is served next, and which is dropped.

mod blue;
mod codel;
mod discipline;
mod drop_tail;
mod fifo;
mod fq_codel;
mod pie;
mod red;

pub use blue::{Blue, BlueConfig};
pub use codel::{Codel, CodelConfig};
pub use discipline::Discipline;
pub use drop_tail::DropTail;
pub use fq_codel::{FqCodel, FqCodelConfig};
pub(crate) use pie::MARK_ECN_THRESHOLD;
pub use pie::{Pie, PieConfig};
pub use red::{Red, RedConfig};

use sweetspot_units::{Bytes, Time};

/// A queue in front of a link. `P` is the packet (or a handle of it).
pub trait Queue<P> {
    /// Enqueues `packet`. The error is the packet that was dropped: `packet` itself, or a waiting one (FQ-CoDel).
    /// `in_service` is the size of the packet on the link, zero if the link is idle.
    fn enqueue(&mut self, now: Time, packet: P, size: Bytes, in_service: Bytes) -> Result<(), P>;

    /// Removes the next packet to serve, with its size. A discipline that drops at the head (CoDel) passes each dropped
    /// packet to `dropped`.
    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(P)) -> Option<(P, Bytes)>;

    /// Packets waiting, without the one in service.
    fn packets(&self) -> u64;

    /// Bytes waiting, without the packet in service.
    fn bytes(&self) -> Bytes;
}
