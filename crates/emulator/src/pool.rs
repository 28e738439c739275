//! Memory for the packets on the path. Frames are copied in on arrival and out on release. Once the pool has grown to the
//! path's capacity, nothing is allocated.

use sweetspot_linux::packet::PartialChecksum;
use sweetspot_linux::scheduling;
use sweetspot_path::Packet;
use sweetspot_units::Bytes;

use crate::checksum::fold;
use crate::veth::ETHERNET_HEADER;

/// Number of slots added at a time when the pool is exhausted.
const SLOTS_PER_CHUNK: usize = 512;

/// A packet on the path: a handle to its frame in the [`Pool`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketHandle {
    slot: u32,
    length: u32,
    /// The tag of its host pair; see [`Routes`](crate::host_pair::Routes).
    pub host_pair: u16,
    /// Whether another packet was in the buffer when this one arrived, so that it leaves right after that one.
    pub follows: bool,
    /// Hash of its flow: addresses, protocol and ports.
    flow: u32,
    ecn: Ecn,
    /// Work that the sender left to a network card.
    pub checksum: Option<PartialChecksum>,
    place: Option<Place>,
}

/// The position of a packet in a super-frame. The last packet has none: it may be shorter and have other flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The super-frame's number in its direction.
    pub super_frame: u32,
    pub number: u32,
}

impl PacketHandle {
    /// Whether `next` is certainly the next packet of the same super-frame, with the same ECN field.
    pub fn is_before(self, next: PacketHandle) -> bool {
        let (Some(own), Some(other)) = (self.place, next.place) else { return false };
        let following = Place { number: own.number + 1, ..own };
        other == following && self.ecn == next.ecn
    }

    /// The length of its frame.
    pub fn frame_length(self) -> usize {
        self.length as usize
    }
}

/// Properties of an arriving packet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Arrival {
    pub host_pair: u16,
    /// Whether another packet was in the buffer.
    pub follows: bool,
    /// Work that the sender left to a network card.
    pub checksum: Option<PartialChecksum>,
    /// Its position in a super-frame.
    pub place: Option<Place>,
    /// Hash of its flow, if already known.
    pub flow: Option<u32>,
}

/// A packet's ECN field (RFC 3168 section 5), which the path may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ecn {
    NotCapable,
    Capable,
    /// "Congestion experienced" must still be written to the frame.
    Marked,
}

impl Packet for PacketHandle {
    fn wire_size(&self) -> Bytes {
        Bytes::new(u64::from(self.length).saturating_sub(ETHERNET_HEADER as u64))
    }

    fn flow(&self) -> u64 {
        self.flow.into()
    }

    fn mark_ecn(&mut self) -> bool {
        if self.ecn == Ecn::Capable {
            self.ecn = Ecn::Marked;
        }
        self.ecn == Ecn::Marked
    }
}

/// Position of the type in an Ethernet frame, and the type of IPv4.
const ETHER_TYPE: std::ops::Range<usize> = 12..14;
const IPV4: [u8; 2] = [0x08, 0x00];
/// Positions of an IPv4 header's first word, which ends with the ECN field, and of its checksum.
const FIRST_WORD: std::ops::Range<usize> = ETHERNET_HEADER..ETHERNET_HEADER + 2;
const CHECKSUM: std::ops::Range<usize> = ETHERNET_HEADER + 10..ETHERNET_HEADER + 12;
/// The bits of the ECN field; both are set for "congestion experienced".
const ECN_BITS: u16 = 0b11;

fn ecn_of(frame: &[u8]) -> Ecn {
    match frame.get(FIRST_WORD) {
        Some([_, tos]) if frame[ETHER_TYPE] == IPV4 && u16::from(*tos) & ECN_BITS != 0 => {
            Ecn::Capable
        }
        _ => Ecn::NotCapable,
    }
}

/// Writes "congestion experienced" into an IPv4 frame.
fn write_mark(frame: &mut [u8]) {
    let word = |frame: &[u8], at: std::ops::Range<usize>| {
        frame.get(at).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    };
    let (before, checksum) = (word(frame, FIRST_WORD), word(frame, CHECKSUM));
    let after = before | ECN_BITS;
    // RFC 1624: HC' = ~(~HC + ~m + m')
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    for (at, word) in [(FIRST_WORD, after), (CHECKSUM, !fold(sum))] {
        if let Some(bytes) = frame.get_mut(at) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
    }
}

/// Positions of the protocol and the addresses in an IPv4 header. From the transport header, only the ports are hashed.
const PROTOCOL: usize = 9;
const ADDRESSES: std::ops::Range<usize> = 12..20;
const PORT_BYTES: usize = 4;
/// Parameters of FNV-1a (draft-eastlake-fnv).
const FNV_BASIS: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

/// A hash of an IPv4 frame's flow; all frames of other kinds have the same. Later fragments have no ports, so content is
/// hashed in their place.
pub(crate) fn flow_of(frame: &[u8]) -> u32 {
    let Some(packet) = frame.get(ETHERNET_HEADER..).filter(|p| p.len() >= ADDRESSES.end) else {
        return 0;
    };
    let header = usize::from(packet[0] & 0x0f) * 4;
    let ports = packet.get(header..header + PORT_BYTES).unwrap_or_default();
    let named = packet[ADDRESSES].iter().chain(ports).chain(&packet[PROTOCOL..=PROTOCOL]);
    named.fold(FNV_BASIS, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(FNV_PRIME))
}

/// Slots of equal size for frames.
#[derive(Debug)]
pub(crate) struct Pool {
    chunks: Vec<Box<[u8]>>,
    free: Vec<u32>,
    slot: usize,
}

impl Pool {
    /// A pool for frames of up to `largest` bytes, with at least `slots` slots.
    pub fn new(largest: usize, slots: usize) -> Pool {
        // Multiples of 64, so that each frame starts at a cache line.
        let mut pool =
            Pool { chunks: Vec::new(), free: Vec::new(), slot: largest.next_multiple_of(64) };
        for _ in 0..slots.div_ceil(SLOTS_PER_CHUNK) {
            pool.grow();
        }
        pool
    }

    /// Copies a frame into a slot, which must be large enough: its headers, and the payload after them.
    pub fn store(&mut self, headers: &[u8], payload: &[u8], arrival: Arrival) -> PacketHandle {
        if self.free.is_empty() {
            self.grow();
        }
        let slot = self.free.pop().unwrap_or_default();
        let (chunk, start) = self.place(slot);
        let length = headers.len() + payload.len();
        let frame = &mut self.chunks[chunk][start..start + length];
        frame[..headers.len()].copy_from_slice(headers);
        frame[headers.len()..].copy_from_slice(payload);
        let Arrival { host_pair, follows, checksum, place, flow } = arrival;
        let (flow, ecn) = (flow.unwrap_or_else(|| flow_of(frame)), ecn_of(frame));
        PacketHandle { slot, length: length as u32, host_pair, follows, flow, ecn, checksum, place }
    }

    /// Writes a pending ECN mark of `packet` into its frame.
    pub fn write_mark(&mut self, packet: PacketHandle) {
        if packet.ecn == Ecn::Marked {
            write_mark(self.frame_mut(packet));
        }
    }

    /// The frame of `packet`, mutable.
    pub fn frame_mut(&mut self, packet: PacketHandle) -> &mut [u8] {
        let (chunk, start) = self.place(packet.slot);
        &mut self.chunks[chunk][start..start + packet.length as usize]
    }

    /// The frame of `packet`.
    pub fn frame(&self, packet: PacketHandle) -> &[u8] {
        let (chunk, start) = self.place(packet.slot);
        &self.chunks[chunk][start..start + packet.length as usize]
    }

    /// Frees the slot of `packet`.
    pub fn free(&mut self, packet: PacketHandle) {
        self.free.push(packet.slot);
    }

    fn place(&self, slot: u32) -> (usize, usize) {
        (slot as usize / SLOTS_PER_CHUNK, slot as usize % SLOTS_PER_CHUNK * self.slot)
    }

    fn grow(&mut self) {
        // Filled with nonzero bytes, so that the pages are allocated now.
        let chunk = vec![0xff; SLOTS_PER_CHUNK * self.slot].into_boxed_slice();
        // Best effort: without the privilege to lock memory, an idle machine does not swap either.
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
    fn the_pool_returns_every_stored_frame_unchanged() {
        let mut pool = Pool::new(100, 1);
        let handles: Vec<_> =
            (0..2000_u32).map(|n| pool.store(&n.to_be_bytes(), &[], Arrival::default())).collect();
        for (n, packet) in (0_u32..).zip(&handles) {
            assert_eq!(pool.frame(*packet), n.to_be_bytes());
        }
    }

    /// The ones' complement sum of the header's words: all ones in a valid header (RFC 1071).
    fn header_sum(frame: &[u8]) -> u32 {
        let words = frame[ETHERNET_HEADER..ETHERNET_HEADER + 20].chunks(2);
        let sum: u32 = words.map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        (sum & 0xffff) + (sum >> 16)
    }

    proptest::proptest! {
        #[test]
        fn an_ecn_mark_keeps_the_header_checksum_valid(mut header in proptest::array::uniform20(0_u8..), ect in 1_u8..4) {
            header[0] = 0x45;
            header[1] = header[1] & !3 | ect;
            (header[10], header[11]) = (0, 0);
            let mut frame = [&[0; 12][..], &IPV4, &header].concat();
            let checksum = !(header_sum(&frame) as u16);
            frame[CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
            let mut pool = Pool::new(100, 1);
            let mut packet = pool.store(&frame, &[], Arrival::default());
            proptest::prop_assert!(packet.mark_ecn());
            pool.write_mark(packet);
            let marked = pool.frame(packet);
            proptest::prop_assert_eq!(marked[FIRST_WORD][1], frame[FIRST_WORD][1] | 3);
            proptest::prop_assert_eq!(header_sum(marked), 0xffff);
        }
    }

    #[test]
    fn frames_without_ecn_support_are_not_marked() {
        let mut pool = Pool::new(100, 1);
        let not_ect = [&[0; 12][..], &IPV4, &[0x45, 0xfc], &[0; 18]].concat();
        let arp = [&[0; 12][..], &[0x08, 0x06], &[0x45, 0x01], &[0; 18]].concat();
        for frame in [&not_ect[..], &arp, b"short"] {
            assert!(!pool.store(frame, &[], Arrival::default()).mark_ecn());
        }
    }

    #[test]
    fn freed_slots_are_reused() {
        let mut pool = Pool::new(100, SLOTS_PER_CHUNK);
        for _ in 0..10 * SLOTS_PER_CHUNK {
            let packet = pool.store(b"fr", b"ame", Arrival::default());
            pool.free(packet);
        }
        assert_eq!(pool.chunks.len(), 1);
    }
}
