//! Queue disciplines: who waits, who is thrown away.

mod codel;
mod discipline;
mod drop_tail;
mod fifo;
mod fq_codel;
mod red;

pub use codel::{Codel, CodelSetting};
pub use discipline::Discipline;
pub use drop_tail::DropTail;
pub use fq_codel::{FqCodel, FqCodelSetting};
pub use red::{Red, RedSetting};

use sweetspot_units::{Bytes, Time};

/// A queue in front of a link. `P` is the packet (or a handle of it).
pub trait Queue<P> {
    /// Takes `packet` in, or gives back the packet that had to go: itself, or, where the
    /// discipline makes room at another's expense (FQ-CoDel), one that waited. `in_service` is
    /// the size of the packet on the link now, zero if the link idles.
    fn enqueue(&mut self, now: Time, packet: P, size: Bytes, in_service: Bytes) -> Result<(), P>;

    /// The next packet to serve. A discipline that drops at the head (CoDel) hands each victim
    /// to `dropped`.
    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(P)) -> Option<(P, Bytes)>;

    /// Packets waiting, the one in service not among them.
    fn packets(&self) -> u64;

    /// Bytes waiting, the packet in service not among them.
    fn bytes(&self) -> Bytes;
}
