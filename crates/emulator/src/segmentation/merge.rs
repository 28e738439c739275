//! Merges packets of a flow into one frame.

use sweetspot_linux::packet::{Offload, PartialChecksum, Segmentation, Transport};

use super::headers::{
    ACK, IP_ADDRESSES, IP_CHECKSUM, IP_FRAGMENT, IP_ID, IP_LENGTH, Layout, PSH, TCP_FLAGS,
    TCP_SEQUENCE, UDP_LENGTH, sequence, sum, word,
};
use crate::veth::ETHERNET_HEADER;

/// Maximum frame length that a device does not split by default (GSO_LEGACY_MAX_SIZE minus one).
const MAX_SUPER_FRAME: usize = 65_535;

/// Packets merged into one frame, or a packet that stays alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Merge {
    /// `None` if no packet can be merged with it.
    layout: Option<Layout>,
    checksum: Option<PartialChecksum>,
    /// Payload bytes of the first packet, and of all packets.
    size: usize,
    payload: usize,
    pub packets: usize,
    /// Whether the last packet has PSH set.
    pushed: bool,
}

impl Merge {
    /// Begins with the packet in `frame`.
    pub fn new(frame: &[u8], checksum: Option<PartialChecksum>) -> Merge {
        let layout = mergeable(frame, checksum);
        let payload = layout.map_or(0, |layout| frame.len() - layout.payload);
        Merge {
            layout,
            checksum,
            size: payload,
            payload,
            packets: 1,
            pushed: pushes(frame, layout),
        }
    }

    /// Adds the next packet of the same super-frame, which is neither its last one nor marked differently. As
    /// [`Merge::join`], but without reading the packet's frame of `length` bytes.
    pub fn join_known(&mut self, length: usize) -> bool {
        let Some(layout) = self.layout.filter(|_| self.has_room(length)) else { return false };
        self.payload += length - layout.payload;
        self.packets += 1;
        true
    }

    /// Whether a packet with a frame of `length` bytes may be added. No packet may follow a shorter one, or one that must be
    /// delivered at once.
    fn has_room(&self, length: usize) -> bool {
        let full = self.payload == self.size * self.packets;
        full && !self.pushed && self.payload + length <= MAX_SUPER_FRAME
    }

    /// Adds the packet in `next` if it is the next one of the same super-frame, which begins with `first`.
    pub fn join(&mut self, first: &[u8], next: &[u8], checksum: Option<PartialChecksum>) -> bool {
        let Some(layout) = self.layout else { return false };
        if next.len() > first.len()
            || !self.has_room(next.len())
            || !self.follows(first, next, layout)
            || mergeable(next, checksum) != Some(layout)
        {
            return false;
        }
        self.payload += next.len() - layout.payload;
        self.packets += 1;
        self.pushed = pushes(next, Some(layout));
        true
    }

    /// Whether the headers of `next` differ from those in `first` only as in a later packet of a super-frame.
    fn follows(&self, first: &[u8], next: &[u8], layout: Layout) -> bool {
        let same = |range: std::ops::Range<usize>| first.get(range.clone()) == next.get(range);
        let counts = || {
            let id = word(first, IP_ID).map(|id| id.wrapping_add(self.packets as u16));
            word(next, IP_ID) == id
        };
        let transport = || {
            let begin = layout.begin;
            match layout.transport {
                Transport::Udp => same(begin..begin + UDP_LENGTH),
                Transport::Tcp => {
                    let expected = sequence(first, layout).wrapping_add(self.payload as u32);
                    same(begin..begin + TCP_SEQUENCE)
                        && same(begin + TCP_SEQUENCE + 4..begin + TCP_FLAGS)
                        && same(begin + TCP_FLAGS + 1..begin + layout.checksum())
                        && same(begin + layout.checksum() + 2..layout.payload)
                        && sequence(next, layout) == expected
                }
            }
        };
        next.len() > layout.payload
            && same(0..IP_LENGTH)
            && same(IP_FRAGMENT..IP_CHECKSUM)
            && same(IP_ADDRESSES)
            && counts()
            && transport()
    }

    /// Writes the merged headers into `first`. Returns the work left to the card. The payloads of all packets follow, in order.
    pub fn finish(self, first: &mut [u8]) -> Offload {
        let (Some(layout), 2..) = (self.layout, self.packets) else {
            return Offload { checksum: self.checksum, segmentation: None };
        };
        layout.write_lengths(first, self.payload);
        if self.pushed {
            first[layout.begin + TCP_FLAGS] |= PSH;
        }
        let segmentation = Segmentation {
            transport: layout.transport,
            size: self.size as u16,
            headers: layout.payload as u16,
        };
        Offload { checksum: self.checksum, segmentation: Some(segmentation) }
    }
}

/// The layout of a packet that may be merged with others: IPv4 without options, with payload, and no TCP flags except ACK and
/// PSH. All recomputed fields must have their usual values.
fn mergeable(frame: &[u8], checksum: Option<PartialChecksum>) -> Option<Layout> {
    let layout = Layout::of(frame, checksum)?;
    let datagram = frame.len() - layout.begin;
    let length = word(frame, IP_LENGTH).map(usize::from);
    let sound = layout.begin == IP_ADDRESSES.end
        && frame.len() > layout.payload
        && length == Some(frame.len() - ETHERNET_HEADER)
        && sum(&frame[ETHERNET_HEADER..layout.begin]) == u16::MAX
        && word(frame, layout.begin + layout.checksum())
            == Some(layout.pseudo_header(frame, datagram));
    let plain = match layout.transport {
        Transport::Tcp => frame[layout.begin + TCP_FLAGS] & !PSH == ACK,
        Transport::Udp => word(frame, layout.begin + UDP_LENGTH).map(usize::from) == Some(datagram),
    };
    (sound && plain).then_some(layout)
}

fn pushes(frame: &[u8], layout: Option<Layout>) -> bool {
    layout.is_some_and(|layout| {
        layout.transport == Transport::Tcp && frame[layout.begin + TCP_FLAGS] & PSH != 0
    })
}
