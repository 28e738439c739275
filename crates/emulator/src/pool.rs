//! Room for the packets on the path: frames are copied in on arrival and out on release, and
//! nothing is allocated in between once the pool has grown to what the path holds.

use sweetspot_linux::scheduling;
use sweetspot_path::Packet;
use sweetspot_units::Bytes;

use crate::wires::ETHERNET_HEADER;

/// Slots that are added together when the pool has run out.
const GROWTH: usize = 512;

/// A packet on the path: a handle of its frame in the [`Pool`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parcel {
    slot: u32,
    length: u32,
    /// Which pair of hosts it travels between; see [`Detours`](crate::leaf::Detours).
    pub leaf: u16,
    /// Another packet was in the buffer when this one came: it leaves right behind it.
    pub follows: bool,
}

impl Packet for Parcel {
    fn wire_size(&self) -> Bytes {
        Bytes::new(u64::from(self.length).saturating_sub(ETHERNET_HEADER as u64))
    }
}

/// Equal slots for frames.
#[derive(Debug)]
pub(crate) struct Pool {
    chunks: Vec<Box<[u8]>>,
    free: Vec<u32>,
    slot: usize,
}

impl Pool {
    /// A pool for frames of up to `largest` bytes with room for at least `slots` of them.
    pub fn new(largest: usize, slots: usize) -> Pool {
        // 64: a frame starts at a cache line.
        let mut pool =
            Pool { chunks: Vec::new(), free: Vec::new(), slot: largest.next_multiple_of(64) };
        for _ in 0..slots.div_ceil(GROWTH) {
            pool.grow();
        }
        pool
    }

    /// Copies `frame`, at most as long as the pool's slots, in.
    pub fn store(&mut self, frame: &[u8], leaf: u16, follows: bool) -> Parcel {
        if self.free.is_empty() {
            self.grow();
        }
        let slot = self.free.pop().unwrap_or_default();
        let (chunk, start) = self.place(slot);
        self.chunks[chunk][start..start + frame.len()].copy_from_slice(frame);
        Parcel { slot, length: frame.len() as u32, leaf, follows }
    }

    /// The frame of `parcel`.
    pub fn frame(&self, parcel: Parcel) -> &[u8] {
        let (chunk, start) = self.place(parcel.slot);
        &self.chunks[chunk][start..start + parcel.length as usize]
    }

    /// Gives the slot of `parcel` back.
    pub fn free(&mut self, parcel: Parcel) {
        self.free.push(parcel.slot);
    }

    fn place(&self, slot: u32) -> (usize, usize) {
        (slot as usize / GROWTH, slot as usize % GROWTH * self.slot)
    }

    fn grow(&mut self) {
        // Written with something other than zeros, so that the pages exist from now on.
        let chunk = vec![0xff; GROWTH * self.slot].into_boxed_slice();
        // Best effort: without the right to lock memory, an idle machine does not swap either.
        let _ = scheduling::lock_memory(&chunk);
        let first = (self.chunks.len() * GROWTH) as u32;
        self.chunks.push(chunk);
        self.free.extend((first..first + GROWTH as u32).rev());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_out_as_it_went_in_however_many_are_inside() {
        let mut pool = Pool::new(100, 1);
        let parcels: Vec<_> =
            (0..2000_u32).map(|n| pool.store(&n.to_be_bytes(), 0, false)).collect();
        for (n, parcel) in (0_u32..).zip(&parcels) {
            assert_eq!(pool.frame(*parcel), n.to_be_bytes());
        }
    }

    #[test]
    fn freed_slots_are_used_again() {
        let mut pool = Pool::new(100, GROWTH);
        for _ in 0..10 * GROWTH {
            let parcel = pool.store(b"frame", 0, false);
            pool.free(parcel);
        }
        assert_eq!(pool.chunks.len(), 1);
    }
}
