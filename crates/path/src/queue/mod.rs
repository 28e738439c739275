//! Queue disciplines: who waits, who is thrown away.

mod drop_tail;

pub use drop_tail::DropTail;

use sweetspot_units::{Bytes, Time};

/// A queue in front of a link. `P` is the packet (or a handle of it).
pub trait Queue<P> {
    /// Takes `packet` in, or gives it back if it is dropped. `in_service` is the size of the
    /// packet on the link now, zero if the link idles.
    fn enqueue(&mut self, now: Time, packet: P, size: Bytes, in_service: Bytes) -> Result<(), P>;

    /// The next packet to serve. A discipline that drops at the head (CoDel) hands each victim
    /// to `dropped`.
    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(P)) -> Option<(P, Bytes)>;

    /// Packets waiting, the one in service not among them.
    fn packets(&self) -> u64;

    /// Bytes waiting, the packet in service not among them.
    fn bytes(&self) -> Bytes;
}
