//! Segmentation and receive offload, as in network cards: a super-frame is split into its packets (TSO), and packets of a
//! flow that leave together are merged into one (GRO). Only IPv4 packets without options are merged, and only if splitting
//! them again would restore every bit.

mod headers;
pub(crate) mod merge;
pub(crate) mod split;

use sweetspot_path::{DirectionSpec, PathSpec};

/// Above this many packets per second in one direction, packets are not forwarded singly: each takes about 1.7 us of CPU
/// time.
const MAX_SINGLE_PACKETS: f64 = 100e3;

/// Whether the path through `hops` carries more packets than can be handed to the kernel singly.
pub(crate) fn is_needed(hops: &[PathSpec]) -> bool {
    let packets = |direction: fn(&PathSpec) -> &DirectionSpec| {
        let rates = hops.iter().map(|hop| direction(hop).lasting_rate().as_f64());
        rates.fold(f64::INFINITY, f64::min) / 8.0 / hops[0].mtu.as_f64()
    };
    packets(|hop| &hop.up).max(packets(|hop| &hop.down)) > MAX_SINGLE_PACKETS
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use sweetspot_linux::packet::{Offload, PartialChecksum, Segmentation, Transport};

    use super::headers::*;
    use super::merge::Merge;
    use super::split::{MAX_HEADERS, Segments};
    use super::*;
    use crate::veth::ETHERNET_HEADER;

    const PARTIAL_TCP: Option<PartialChecksum> = Some(PartialChecksum { start: 34, offset: 16 });
    const LARGEST: usize = 1514;

    /// A super-frame, and the work left to the card.
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
            // The "don't fragment" bit is set or clear.
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

    /// Merges `frames` as far as possible.
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

    /// The ones' complement sum of all words, computed byte by byte.
    fn slow_sum(bytes: &[u8]) -> u64 {
        let weigh = |(at, byte): (usize, &u8)| u64::from(*byte) << (8 * ((at + 1) % 2));
        bytes.iter().enumerate().map(weigh).sum()
    }

    proptest! {
        #[test]
        fn merging_the_segments_restores_the_frame(frame in super_frame()) {
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
        fn join_known_merges_like_join(frame in super_frame()) {
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
        fn each_segment_has_valid_headers_and_checksums(frame in super_frame()) {
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
                // A card replaces the pseudo-header's sum by the complement of the sum including all bytes after it.
                let place = 34 + usize::from(frame.offload.checksum.unwrap().offset);
                let mut complete = packet.clone();
                let sum = slow_sum(&complete[34..]);
                put(&mut complete, place, usize::from(!((sum % 0xffff) as u16)));
                let pseudo = slow_sum(&packet[26..34]) + u64::from(packet[23]) + (packet.len() - 34) as u64;
                prop_assert_eq!((slow_sum(&complete[34..]) + pseudo) % 0xffff, 0);
            }
        }

        /// Modified packets are merged only if splitting restores them.
        #[test]
        fn modified_packets_merge_only_if_splitting_restores_them(frame in super_frame(), which: prop::sample::Index, at: prop::sample::Index, bit in 0_u8..8) {
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
                // Bits of the payload do not matter, and only the last packet may have PSH set.
                let inside = (from..from + joined).contains(&changed);
                let push = at == 34 + TCP_FLAGS && 1_u8 << bit == PSH;
                prop_assert!(!inside || joined == 1 || at >= headers || push);
                from += joined;
            }
        }

        #[test]
        fn hostile_frames_are_rejected_or_split(
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
    fn segmentation_places_tcp_flags_as_a_nic_does() {
        let mut frame = SuperFrame::new(Transport::Tcp, &[0; MAX_HEADERS], 3, 100, &[7; 250]);
        frame.bytes[34 + TCP_FLAGS] = CWR | ACK | PSH | FIN;
        let flags: Vec<u8> = frame.cut().iter().map(|packet| packet[34 + TCP_FLAGS]).collect();
        assert_eq!(flags, [CWR | ACK, ACK, ACK | PSH | FIN]);
    }

    #[test]
    fn packets_that_no_nic_merges_stay_separate() {
        let packets = SuperFrame::new(Transport::Tcp, &[1; MAX_HEADERS], 3, 100, &[7; 300]).cut();
        assert_eq!(merged(&packets, PARTIAL_TCP).0, 3);
        // A complete checksum, a VLAN tag, an ACK without data.
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
    fn nothing_merges_after_a_short_packet() {
        let packets = SuperFrame::new(Transport::Tcp, &[0; MAX_HEADERS], 3, 100, &[7; 180]).cut();
        let mut merge = Merge::new(&packets[0], PARTIAL_TCP);
        assert!(merge.join(&packets[0], &packets[1], PARTIAL_TCP));
        assert!(!merge.join_known(packets[1].len()));
    }

    #[test]
    fn a_merged_frame_never_exceeds_the_device_limit() {
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
    fn low_packet_rates_need_no_offload() {
        let needed = |path: &str| is_needed(&[path.parse().unwrap()]);
        assert!(!needed("rate=1Gbit/s rtt=10ms buffer=1MB"));
        assert!(needed("rate=2Gbit/s rtt=10ms buffer=1MB"));
        assert!(needed("up.rate=10Mbit/s down.rate=2Gbit/s rtt=10ms buffer=1MB"));
        assert!(!needed("rate=5Gbit/s rtt=10ms buffer=1MB mtu=9000B"));
        let hops = ["rate=10Gbit/s rtt=1ms buffer=1MB", "rate=100Mbit/s rtt=1ms buffer=1MB"];
        assert!(!is_needed(&hops.map(|hop| hop.parse().unwrap())));
    }
}
