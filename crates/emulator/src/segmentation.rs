//! Segmentation and receive offload, as network cards do it: a super-frame is split into its packets (TSO), and packets of a
//! flow that leave together are merged into one (GRO). Only IPv4 without options is merged, and only if a split restores every
//! bit.

use sweetspot_linux::packet::{Offload, PartialChecksum, Segmentation, Transport};
use sweetspot_path::{DirectionSpec, PathSpec};

use crate::checksum::fold;
use crate::veth::ETHERNET_HEADER;

/// Ethernet's, and the longest of IPv4 and TCP.
const MAX_HEADERS: usize = ETHERNET_HEADER + 60 + 60;
/// The longest frame that a device leaves whole by default (GSO_LEGACY_MAX_SIZE, less one).
const MAX_SUPER_FRAME: usize = 65_535;

/// Where a frame has Ethernet's type; the fields of its IPv4 header (RFC 791).
const ETHER_TYPE: usize = 12;
const IPV4: u16 = 0x0800;
const IP_LENGTH: usize = ETHERNET_HEADER + 2;
const IP_ID: usize = ETHERNET_HEADER + 4;
const IP_FRAGMENT: usize = ETHERNET_HEADER + 6;
const IP_PROTOCOL: usize = ETHERNET_HEADER + 9;
const IP_CHECKSUM: usize = ETHERNET_HEADER + 10;
const IP_ADDRESSES: std::ops::Range<usize> = ETHERNET_HEADER + 12..ETHERNET_HEADER + 20;
/// More fragments, or an offset.
const FRAGMENTED: u16 = 0x3fff;
/// Fields of TCP's header (RFC 9293) and UDP's (RFC 768), from its beginning.
const TCP_SEQUENCE: usize = 4;
const TCP_FLAGS: usize = 13;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const CWR: u8 = 0x80;
const UDP_LENGTH: usize = 4;

/// More packets per second than this, in one direction, are not carried one by one: each takes some 1.7 us of a processor.
const MAX_SINGLE_PACKETS: f64 = 100e3;

/// Whether the path through `hops` carries more packets than the kernel can be handed one by one.
pub(crate) fn is_needed(hops: &[PathSpec]) -> bool {
    let packets = |direction: fn(&PathSpec) -> &DirectionSpec| {
        let rates = hops.iter().map(|hop| direction(hop).lasting_rate().as_f64());
        rates.fold(f64::INFINITY, f64::min) / 8.0 / hops[0].mtu.as_f64()
    };
    packets(|hop| &hop.up).max(packets(|hop| &hop.down)) > MAX_SINGLE_PACKETS
}

/// Where the headers of a frame begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    transport: Transport,
    /// The transport's header.
    begin: usize,
    payload: usize,
}

impl Layout {
    /// Of TCP or UDP over IPv4 that is no fragment and has a checksum that is yet to be computed.
    fn of(frame: &[u8], checksum: Option<PartialChecksum>) -> Option<Layout> {
        let checksum = checksum?;
        let byte = |at: usize| frame.get(at).copied().map(usize::from);
        if word(frame, ETHER_TYPE)? != IPV4 || word(frame, IP_FRAGMENT)? & FRAGMENTED != 0 {
            return None;
        }
        let version_and_length = byte(ETHERNET_HEADER)?;
        let begin = ETHERNET_HEADER + (version_and_length & 0xf) * 4;
        let transport = match byte(IP_PROTOCOL)? {
            6 => Transport::Tcp,
            17 => Transport::Udp,
            _ => return None,
        };
        let header = match transport {
            Transport::Tcp => (byte(begin + 12)? >> 4) * 4,
            Transport::Udp => 8,
        };
        let layout = Layout { transport, begin, payload: begin + header };
        let fits = begin >= IP_ADDRESSES.end
            && header >= layout.checksum() + 2
            && frame.len() >= layout.payload;
        let place = PartialChecksum { start: begin as u16, offset: layout.checksum() as u16 };
        (version_and_length >> 4 == 4 && fits && checksum == place).then_some(layout)
    }

    /// Where the transport's header has its checksum.
    fn checksum(self) -> usize {
        match self.transport {
            Transport::Tcp => 16,
            Transport::Udp => 6,
        }
    }

    /// The headers for `payload` bytes: the lengths, IPv4's checksum, and the pseudo-header's sum where the transport's is
    /// to be computed.
    fn write_lengths(self, headers: &mut [u8], payload: usize) {
        let datagram = self.payload - self.begin + payload;
        put(headers, IP_LENGTH, self.begin - ETHERNET_HEADER + datagram);
        put(headers, IP_CHECKSUM, 0);
        let checksum = !sum(&headers[ETHERNET_HEADER..self.begin]);
        put(headers, IP_CHECKSUM, checksum.into());
        if self.transport == Transport::Udp {
            put(headers, self.begin + UDP_LENGTH, datagram);
        }
        let pseudo = self.pseudo_header(headers, datagram);
        put(headers, self.begin + self.checksum(), pseudo.into());
    }

    /// The sum of the pseudo-header (RFC 9293, section 3.1).
    fn pseudo_header(self, headers: &[u8], datagram: usize) -> u16 {
        let addresses: u32 = sum(&headers[IP_ADDRESSES]).into();
        fold(addresses + u32::from(headers[IP_PROTOCOL]) + datagram as u32)
    }
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

/// Numbers lose their bits above the 16th; lengths have none.
fn put(frame: &mut [u8], at: usize, number: usize) {
    frame[at..at + 2].copy_from_slice(&(number as u16).to_be_bytes());
}

fn sequence(frame: &[u8], layout: Layout) -> u32 {
    let bytes = frame[layout.begin + TCP_SEQUENCE..].first_chunk();
    bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// The sum of a header's 16-bit words in ones' complement (RFC 1071).
fn sum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2);
    fold(words.map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum())
}

/// The packets of a super-frame.
#[derive(Debug, Clone)]
pub(crate) struct Segments<'a> {
    frame: &'a [u8],
    layout: Layout,
    size: usize,
    /// The payload that is cut off, and into how many packets.
    cut: usize,
    count: u16,
}

/// A packet of a super-frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment<'a> {
    headers: [u8; MAX_HEADERS],
    length: usize,
    pub payload: &'a [u8],
}

impl Segment<'_> {
    /// The headers, from Ethernet's on.
    pub fn headers(&self) -> &[u8] {
        &self.headers[..self.length]
    }
}

impl<'a> Segments<'a> {
    /// The packets of `frame`. `None` if it cannot be cut into frames of up to `largest` bytes.
    pub fn of(frame: &'a [u8], offload: Offload, largest: usize) -> Option<Segments<'a>> {
        let Segmentation { transport, size, .. } = offload.segmentation?;
        let layout = Layout::of(frame, offload.checksum)?;
        let size = usize::from(size);
        let possible = layout.transport == transport && size > 0;
        (possible && layout.payload + size <= largest).then_some(Segments {
            frame,
            layout,
            size,
            cut: 0,
            count: 0,
        })
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        let (all, payload) = self.frame.split_at(self.layout.payload);
        let rest = &payload[self.cut..];
        if rest.is_empty() {
            return None;
        }
        let payload = &rest[..rest.len().min(self.size)];
        let mut headers = [0; MAX_HEADERS];
        let own = &mut headers[..all.len()];
        own.copy_from_slice(all);
        // Each has an identification of its own, as the kernel gives them (inet_gso_segment).
        let id = word(own, IP_ID).unwrap_or_default().wrapping_add(self.count);
        put(own, IP_ID, id.into());
        if self.layout.transport == Transport::Tcp {
            let at = sequence(own, self.layout).wrapping_add(self.cut as u32);
            own[self.layout.begin + TCP_SEQUENCE..][..4].copy_from_slice(&at.to_be_bytes());
            let flags = &mut own[self.layout.begin + TCP_FLAGS];
            // As tcp_gso_segment does.
            if payload.len() < rest.len() {
                *flags &= !(FIN | PSH);
            }
            if self.cut > 0 {
                *flags &= !CWR;
            }
        }
        self.layout.write_lengths(own, payload.len());
        self.cut += payload.len();
        self.count = self.count.wrapping_add(1);
        Some(Segment { headers, length: all.len(), payload })
    }
}

/// Packets that are merged into one frame, or one that stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Merge {
    /// `None`: nothing may be merged with it.
    layout: Option<Layout>,
    checksum: Option<PartialChecksum>,
    /// The payload of the first packet, and of all.
    size: usize,
    payload: usize,
    /// How many there are.
    pub packets: usize,
    /// Whether the last one said PSH.
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

    /// Takes a packet in that is known to be the next one of the last one's super-frame, neither its last nor marked
    /// differently: [`Merge::join`] without a look at its frame, which has `length` bytes.
    pub fn join_known(&mut self, length: usize) -> bool {
        let Some(layout) = self.layout.filter(|_| self.has_room(length)) else { return false };
        self.payload += length - layout.payload;
        self.packets += 1;
        true
    }

    /// Whether a packet with a frame of `length` bytes may follow the others. None may follow a shorter one, or one that must
    /// be delivered at once.
    fn has_room(&self, length: usize) -> bool {
        let full = self.payload == self.size * self.packets;
        full && !self.pushed && self.payload + length <= MAX_SUPER_FRAME
    }

    /// Adds the packet in `next` if it is the next of the same super-frame, which begins with `first`.
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

    /// Whether the headers of `next` differ from those in `first` only as a later packet's do.
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

    /// Writes the merged headers into `first`. Returns the work left to the card; the payload is all packets' payloads in
    /// order.
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

/// Where the headers of a packet are that may be merged with others: IPv4 without options, with payload, TCP with no flag
/// but ACK and PSH; and all that is computed anew is as it would be.
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

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const PARTIAL_TCP: Option<PartialChecksum> = Some(PartialChecksum { start: 34, offset: 16 });
    const LARGEST: usize = 1514;

    /// A super-frame and the work that it leaves to the card.
    #[derive(Debug, Clone)]
    struct SuperFrame {
        bytes: Vec<u8>,
        offload: Offload,
    }

    impl SuperFrame {
        fn new(
            transport: Transport,
            noise: &[u8],
            options: usize,
            size: u16,
            payload: &[u8],
        ) -> SuperFrame {
            let header = if transport == Transport::Tcp { 20 + options * 4 } else { 8 };
            let layout = Layout { transport, begin: 34, payload: 34 + header };
            let mut bytes = [&noise[..layout.payload], payload].concat();
            put(&mut bytes, ETHER_TYPE, IPV4.into());
            bytes[ETHERNET_HEADER] = 0x45;
            // Don't fragment, or not.
            put(&mut bytes, IP_FRAGMENT, usize::from(noise[0] & 1) << 14);
            bytes[IP_PROTOCOL] = if transport == Transport::Tcp { 6 } else { 17 };
            if transport == Transport::Tcp {
                bytes[layout.begin + 12] = (header as u8 / 4) << 4;
                bytes[layout.begin + TCP_FLAGS] = ACK | noise[1] & PSH;
            }
            layout.write_lengths(&mut bytes, payload.len());
            let checksum = Some(PartialChecksum { start: 34, offset: layout.checksum() as u16 });
            let segmentation =
                Some(Segmentation { transport, size, headers: layout.payload as u16 });
            SuperFrame { bytes, offload: Offload { checksum, segmentation } }
        }

        fn cut(&self) -> Vec<Vec<u8>> {
            let packets = Segments::of(&self.bytes, self.offload, LARGEST).unwrap();
            packets.map(|packet| [packet.headers(), packet.payload].concat()).collect()
        }
    }

    fn super_frame() -> impl Strategy<Value = SuperFrame> {
        let transport = prop_oneof![Just(Transport::Tcp), Just(Transport::Udp)];
        let payload = vec(any::<u8>(), 1..9000);
        (transport, vec(any::<u8>(), MAX_HEADERS), 0_usize..11, 1_u16..1400, payload).prop_map(
            |(transport, noise, options, size, payload)| {
                let payload = &payload[..payload.len().min(usize::from(size) * 60)];
                SuperFrame::new(transport, &noise, options, size, payload)
            },
        )
    }

    /// `frames` merged as far as they can be.
    fn merged(frames: &[Vec<u8>], checksum: Option<PartialChecksum>) -> (usize, SuperFrame) {
        let mut merge = Merge::new(&frames[0], checksum);
        let joins = |next: &&Vec<u8>| merge.join(&frames[0], next, checksum);
        let joined = 1 + frames[1..].iter().take_while(joins).count();
        let mut bytes = frames[0].clone();
        let offload = merge.finish(&mut bytes);
        for next in &frames[1..joined] {
            bytes.extend(&next[offload.segmentation.unwrap().headers.into()..]);
        }
        assert_eq!(merge.packets, joined);
        (joined, SuperFrame { bytes, offload })
    }

    /// The ones' complement sum of all words, byte by byte.
    fn slow_sum(bytes: &[u8]) -> u64 {
        let weigh = |(at, byte): (usize, &u8)| u64::from(*byte) << (8 * ((at + 1) % 2));
        bytes.iter().enumerate().map(weigh).sum()
    }

    proptest! {
        #[test]
        fn what_is_cut_and_merged_is_as_it_was(frame in super_frame()) {
            let packets = frame.cut();
            let (joined, whole) = merged(&packets, frame.offload.checksum);
            prop_assert_eq!(joined, packets.len());
            prop_assert_eq!(&whole.bytes, &frame.bytes);
            prop_assert_eq!(whole.offload.checksum, frame.offload.checksum);
            if joined > 1 {
                prop_assert_eq!(whole.offload, frame.offload);
            }
        }

        #[test]
        fn what_is_known_to_be_next_is_merged_as_what_is_compared(frame in super_frame()) {
            let packets = frame.cut();
            let checksum = frame.offload.checksum;
            let mut compared = Merge::new(&packets[0], checksum);
            let mut known = compared;
            for next in packets.iter().take(packets.len() - 1).skip(1) {
                let joined = compared.join(&packets[0], next, checksum);
                prop_assert_eq!(known.join_known(next.len()), joined);
                prop_assert_eq!(known, compared);
            }
        }

        #[test]
        fn each_packet_is_sound(frame in super_frame()) {
            let Segmentation { size, headers, .. } = frame.offload.segmentation.unwrap();
            let (size, headers) = (usize::from(size), usize::from(headers));
            let packets = frame.cut();
            prop_assert_eq!(packets.len(), (frame.bytes.len() - headers).div_ceil(size));
            let payload: Vec<u8> = packets.iter().flat_map(|p| &p[headers..]).copied().collect();
            prop_assert_eq!(&payload, &frame.bytes[headers..]);
            for (number, packet) in packets.iter().enumerate() {
                let last = number + 1 == packets.len();
                prop_assert!(packet.len() == headers + size || last && packet.len() < headers + size);
                prop_assert_eq!(word(packet, IP_LENGTH), Some((packet.len() - 14) as u16));
                prop_assert_eq!(slow_sum(&packet[14..34]) % 0xffff, 0);
                // A card replaces the sum of the pseudo-header by the complement of that and of all behind it.
                let place = 34 + usize::from(frame.offload.checksum.unwrap().offset);
                let mut complete = packet.clone();
                let sum = slow_sum(&complete[34..]);
                put(&mut complete, place, usize::from(!((sum % 0xffff) as u16)));
                let pseudo = slow_sum(&packet[26..34]) + u64::from(packet[23]) + (packet.len() - 34) as u64;
                prop_assert_eq!((slow_sum(&complete[34..]) + pseudo) % 0xffff, 0);
            }
        }

        /// Packets with any change are merged only if a split restores them.
        #[test]
        fn nothing_is_merged_that_differs(frame in super_frame(), which: prop::sample::Index, at: prop::sample::Index, bit in 0_u8..8) {
            let mut packets = frame.cut();
            let changed = which.index(packets.len());
            let packet = &mut packets[changed];
            let at = at.index(packet.len());
            packet[at] ^= 1_u8 << bit;
            let headers = usize::from(frame.offload.segmentation.unwrap().headers);
            let mut from = 0;
            while from < packets.len() {
                let (joined, whole) = merged(&packets[from..], frame.offload.checksum);
                if joined > 1 {
                    prop_assert_eq!(&whole.cut()[..], &packets[from..from + joined]);
                }
                // Bits of the payload do not matter, and only the last packet may carry PSH.
                let inside = (from..from + joined).contains(&changed);
                let push = at == 34 + TCP_FLAGS && 1_u8 << bit == PSH;
                prop_assert!(!inside || joined == 1 || at >= headers || push);
                from += joined;
            }
        }

        #[test]
        fn hostile_frames_are_refused_or_cut(
            bytes in vec(any::<u8>(), 0..300), ip: bool, size: u16, headers: u16, start in 30_u16..80, offset: u16, tcp: bool,
        ) {
            let mut bytes = bytes;
            if ip && bytes.len() > 40 {
                bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
                bytes[20..22].fill(0);
                bytes[23] = if tcp { 6 } else { 17 };
            }
            let (transport, natural) =
                if tcp { (Transport::Tcp, 16) } else { (Transport::Udp, 6) };
            for offset in [offset, natural] {
                let checksum = Some(PartialChecksum { start: if ip { 34 } else { start }, offset });
                let segmentation = Some(Segmentation { transport, size, headers });
                if let Some(packets) = Segments::of(&bytes, Offload { checksum, segmentation }, LARGEST) {
                    prop_assert!(packets.count() <= bytes.len());
                }
                let mut merge = Merge::new(&bytes, checksum);
                prop_assert!(!merge.join(&bytes, &bytes, checksum));
            }
        }
    }

    #[test]
    fn flags_stand_in_the_packets_where_a_card_leaves_them() {
        let mut frame = SuperFrame::new(Transport::Tcp, &[0; MAX_HEADERS], 3, 100, &[7; 250]);
        frame.bytes[34 + TCP_FLAGS] = CWR | ACK | PSH | FIN;
        let flags: Vec<u8> = frame.cut().iter().map(|packet| packet[34 + TCP_FLAGS]).collect();
        assert_eq!(flags, [CWR | ACK, ACK, ACK | PSH | FIN]);
    }

    #[test]
    fn what_no_card_merges_stays_as_it_is() {
        let packets = SuperFrame::new(Transport::Tcp, &[1; MAX_HEADERS], 3, 100, &[7; 300]).cut();
        assert_eq!(merged(&packets, PARTIAL_TCP).0, 3);
        // A complete checksum, a VLAN tag, an acknowledgement without data.
        assert_eq!(merged(&packets, None).0, 1);
        let mut tagged = packets.clone();
        tagged
            .iter_mut()
            .for_each(|frame| frame[ETHER_TYPE..ETHER_TYPE + 2].copy_from_slice(&[0x81, 0]));
        assert_eq!(merged(&tagged, PARTIAL_TCP).0, 1);
        let bare: Vec<Vec<u8>> = packets.iter().map(|frame| frame[..66].to_vec()).collect();
        assert_eq!(merged(&bare, PARTIAL_TCP).0, 1);
    }

    #[test]
    fn nothing_is_merged_behind_a_shorter_packet() {
        let packets = SuperFrame::new(Transport::Tcp, &[0; MAX_HEADERS], 3, 100, &[7; 180]).cut();
        let mut merge = Merge::new(&packets[0], PARTIAL_TCP);
        assert!(merge.join(&packets[0], &packets[1], PARTIAL_TCP));
        assert!(!merge.join_known(packets[1].len()));
    }

    #[test]
    fn a_frame_is_no_longer_than_a_device_takes() {
        let one = SuperFrame::new(Transport::Tcp, &[0; MAX_HEADERS], 3, 1448, &[7; 1448 * 40]);
        let mut next = SuperFrame::new(Transport::Tcp, &[0; MAX_HEADERS], 3, 1448, &[7; 1448 * 20]);
        next.bytes[34 + TCP_SEQUENCE..][..4].copy_from_slice(&(1448_u32 * 40).to_be_bytes());
        let mut packets = one.cut();
        packets.extend(next.cut().into_iter().enumerate().map(|(number, mut packet)| {
            put(&mut packet, IP_ID, 40 + number);
            Layout::of(&packet, PARTIAL_TCP).unwrap().write_lengths(&mut packet, 1448);
            packet
        }));
        // 45 x 1448 + 66 = 65,226 bytes; one more would be 66,674.
        assert_eq!(merged(&packets, PARTIAL_TCP).0, 45);
    }

    #[test]
    fn rates_that_packets_can_be_carried_at_one_by_one_need_no_offload() {
        let needed = |path: &str| is_needed(&[path.parse().unwrap()]);
        assert!(!needed("rate=1Gbit/s rtt=10ms buffer=1MB"));
        assert!(needed("rate=2Gbit/s rtt=10ms buffer=1MB"));
        assert!(needed("up.rate=10Mbit/s down.rate=2Gbit/s rtt=10ms buffer=1MB"));
        assert!(!needed("rate=5Gbit/s rtt=10ms buffer=1MB mtu=9000B"));
        let hops = ["rate=10Gbit/s rtt=1ms buffer=1MB", "rate=100Mbit/s rtt=1ms buffer=1MB"];
        assert!(!is_needed(&hops.map(|hop| hop.parse().unwrap())));
    }
}
