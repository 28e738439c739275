//! Room for the packets on the path: frames are copied in on arrival and out on release, and
//! nothing is allocated in between once the pool has grown to what the path holds.

use sweetspot_linux::scheduling;
use sweetspot_path::Packet;
use sweetspot_units::Bytes;

use crate::veth::ETHERNET_HEADER;

/// Slots that are added together when the pool has run out.
const SLOTS_PER_CHUNK: usize = 512;

/// A packet on the path: a handle of its frame in the [`Pool`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketHandle {
    slot: u32,
    length: u32,
    /// Which pair of hosts it travels between; see [`ExtraDelays`](crate::host_pair::ExtraDelays).
    pub host_pair: u16,
    /// Another packet was in the buffer when this one came: it leaves right behind it.
    pub follows: bool,
    /// Its flow: addresses, protocol and ports, hashed.
    flow: u32,
}

impl Packet for PacketHandle {
    fn wire_size(&self) -> Bytes {
        Bytes::new(u64::from(self.length).saturating_sub(ETHERNET_HEADER as u64))
    }

    fn flow(&self) -> u64 {
        self.flow.into()
    }
}

/// Where an IPv4 header has the protocol and the addresses; what is hashed of the transport's are its ports.
const PROTOCOL: usize = 9;
const ADDRESSES: std::ops::Range<usize> = 12..20;
const PORT_BYTES: usize = 4;
/// FNV-1a's (draft-eastlake-fnv).
const FNV_BASIS: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

/// A hash of what names the flow of an IPv4 frame; the same for all frames of other kinds. Later fragments have no
/// ports: their content stands in.
fn flow_of(frame: &[u8]) -> u32 {
    let Some(packet) = frame.get(ETHERNET_HEADER..).filter(|p| p.len() >= ADDRESSES.end) else {
        return 0;
    };
    let header = usize::from(packet[0] & 0x0f) * 4;
    let ports = packet.get(header..header + PORT_BYTES).unwrap_or_default();
    let named = packet[ADDRESSES].iter().chain(ports).chain(&packet[PROTOCOL..=PROTOCOL]);
    named.fold(FNV_BASIS, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(FNV_PRIME))
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
        for _ in 0..slots.div_ceil(SLOTS_PER_CHUNK) {
            pool.grow();
        }
        pool
    }

    /// Copies `frame`, at most as long as the pool's slots, in.
    pub fn store(&mut self, frame: &[u8], host_pair: u16, follows: bool) -> PacketHandle {
        if self.free.is_empty() {
            self.grow();
        }
        let slot = self.free.pop().unwrap_or_default();
        let (chunk, start) = self.place(slot);
        self.chunks[chunk][start..start + frame.len()].copy_from_slice(frame);
        let flow = flow_of(frame);
        PacketHandle { slot, length: frame.len() as u32, host_pair, follows, flow }
    }

    /// The frame of `packet`.
    pub fn frame(&self, packet: PacketHandle) -> &[u8] {
        let (chunk, start) = self.place(packet.slot);
        &self.chunks[chunk][start..start + packet.length as usize]
    }

    /// Gives the slot of `packet` back.
    pub fn free(&mut self, packet: PacketHandle) {
        self.free.push(packet.slot);
    }

    fn place(&self, slot: u32) -> (usize, usize) {
        (slot as usize / SLOTS_PER_CHUNK, slot as usize % SLOTS_PER_CHUNK * self.slot)
    }

    fn grow(&mut self) {
        // Written with something other than zeros, so that the pages exist from now on.
        let chunk = vec![0xff; SLOTS_PER_CHUNK * self.slot].into_boxed_slice();
        // Best effort: without the right to lock memory, an idle machine does not swap either.
        let _ = scheduling::lock_memory(&chunk);
        let first = (self.chunks.len() * SLOTS_PER_CHUNK) as u32;
        self.chunks.push(chunk);
        self.free.extend((first..first + SLOTS_PER_CHUNK as u32).rev());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_out_as_it_went_in_however_many_are_inside() {
        let mut pool = Pool::new(100, 1);
        let handles: Vec<_> =
            (0..2000_u32).map(|n| pool.store(&n.to_be_bytes(), 0, false)).collect();
        for (n, packet) in (0_u32..).zip(&handles) {
            assert_eq!(pool.frame(*packet), n.to_be_bytes());
        }
    }

    #[test]
    fn freed_slots_are_used_again() {
        let mut pool = Pool::new(100, SLOTS_PER_CHUNK);
        for _ in 0..10 * SLOTS_PER_CHUNK {
            let packet = pool.store(b"frame", 0, false);
            pool.free(packet);
        }
        assert_eq!(pool.chunks.len(), 1);
    }
}
