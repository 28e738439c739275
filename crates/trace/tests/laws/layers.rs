use sweetspot_trace::file::Record;
use sweetspot_trace::packet::{Dissector, Link, NotASegment, Options, Segment, Timestamps};
use sweetspot_units::Time;

use super::packets::{ACK, SYN, ethernet, ipv4, ipv6, plain, tcp};

const ETHERNET: Link = Link::Ethernet;

fn dissect(link: Link, frame: &[u8]) -> Result<Segment, NotASegment> {
    cut(link, frame, frame.len())
}

/// The segment in a frame that was captured up to `kept` bytes.
fn cut(link: Link, frame: &[u8], kept: usize) -> Result<Segment, NotASegment> {
    let bytes = &frame[..kept];
    Dissector::default().dissect(&Record { time: Time::ZERO, link, bytes, length: frame.len() })
}

#[test]
fn every_link_layer_yields_the_same_segment() {
    let packet = ipv4(6, 0, &[], &tcp(1, ACK, &[], 100));
    let cooked = [&[0; 14][..], &[8, 0], &packet].concat();
    let cooked2 = [&[8, 0][..], &[0; 18], &packet].concat();
    let loopback = [&[2, 0, 0, 0][..], &packet].concat();
    let snap = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &packet].concat();
    let ppp = [&[0xff, 3, 0, 0x21][..], &packet].concat();
    let pppoe = [&[0x11, 0, 0, 1, 0, 0, 0, 0x21][..], &packet].concat();
    // Two labels; the second one is the last.
    let mpls = [&[0, 1, 0, 64, 0, 2, 1, 64][..], &packet].concat();
    let plain = ethernet(&[], 0x0800, &packet);
    let pseudowire = [&[0, 2, 1, 64, 0, 0, 0, 7][..], &plain].concat();
    // Frame control of QoS data; 24 bytes with it, and 2 bytes of QoS control.
    let wifi = [&[0x88, 1][..], &[0; 24], &snap].concat();
    let radiotap = [&[0, 0, 12, 0][..], &[0; 8], &wifi].concat();
    let fddi = [&[0x50][..], &[0; 12], &snap].concat();
    let gre = |kind: u16, flags: u8, inner: &[u8]| {
        let fields = vec![0; 4 * flags.count_ones() as usize];
        ipv4(47, 0, &[], &[&[flags, 0], &kind.to_be_bytes()[..], &fields, inner].concat())
    };
    let udp = |port: u16, inner: &[u8]| {
        ipv4(17, 0, &[], &[&[0, 9], &port.to_be_bytes()[..], &[0; 4], inner].concat())
    };
    let vxlan = udp(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0][..], &plain].concat());
    // Two words of options, followed by Ethernet.
    let geneve = udp(6081, &[&[2, 0, 0x65, 0x58, 0, 0, 7, 0][..], &[0; 8], &plain].concat());
    let gtp = udp(2152, &[&[0x30, 255, 0, 0, 0, 0, 0, 9][..], &packet].concat());
    // A sequence number, and one extension header of four bytes.
    let extended = [0x36, 255, 0, 0, 0, 0, 0, 9, 0, 1, 0, 0x85, 1, 0, 0, 0];
    let gtp_extended = udp(2152, &[&extended[..], &packet].concat());
    // A route of six bytes follows the addresses; the first bit of the second address announces it.
    let mut token_ring = [&[0x10, 0x40][..], &[0; 6], &[0x80, 0, 0, 0, 0, 0], &snap].concat();
    token_ring.splice(14..14, [6, 0x80, 0, 0, 0, 0]);
    let slip = [&[0; 16][..], &packet].concat();
    let hdlc = [&[0x0f, 0, 8, 0][..], &packet].concat();
    let firewire = [&[0; 16][..], &[8, 0], &packet].concat();
    // A mark of four bytes (type 3), followed by the packet (type 9).
    let length = (4 + packet.len() as u16).to_le_bytes();
    let mark = [&[2, 0, 0, 0][..], &[8, 0, 3, 0, 0, 0, 0, 1]].concat();
    let netfilter = [&mark[..], &length, &[9, 0], &packet].concat();
    let tap = [&[12, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0][..], &plain].concat();
    for (link, frame) in [
        (6, token_ring),
        (8, slip),
        (11, snap.clone()),
        (11, packet.clone()),
        (51, pppoe.clone()),
        (104, hdlc),
        (138, firewire),
        (219, mpls.clone()),
        (239, netfilter),
        (258, tap),
        (1, ethernet(&[], 0x0800, &packet)),
        (1, ethernet(&[0x8100], 0x0800, &packet)),
        (1, ethernet(&[0x88a8, 0x8100], 0x0800, &packet)),
        (101, packet.clone()),
        (113, cooked),
        (276, cooked2),
        (0, loopback),
        (1, ethernet(&[], snap.len() as u16, &snap)),
        (1, ethernet(&[0x8100], 0x8864, &pppoe)),
        (1, ethernet(&[], 0x8847, &mpls)),
        (1, ethernet(&[], 0x8847, &pseudowire)),
        (9, ppp),
        (10, fddi),
        (105, wifi),
        (127, radiotap),
        (101, gre(0x0800, 0, &packet)),
        (101, gre(0x0800, 0xb0, &packet)),
        (101, gre(0x6558, 0, &plain)),
        (101, ipv4(4, 0, &[], &packet)),
        (101, vxlan),
        (101, geneve),
        (101, gtp),
        (101, gtp_extended),
    ] {
        let segment = dissect(Link::from_number(link), &frame).unwrap();
        assert_eq!((segment.seq, segment.payload, segment.window), (1, 100, 512), "link {link}");
    }
    assert_eq!(dissect(Link::from_number(147), &packet), Err(NotASegment::UnknownLink));
}

#[test]
fn the_payload_length_comes_from_the_ip_header() {
    let whole = plain(1000);
    assert_eq!(cut(ETHERNET, &whole, 96).unwrap().payload, 1000);
    // Ethernet pads an empty ACK to 60 bytes.
    let padded = [plain(0), vec![0; 6]].concat();
    assert_eq!(dissect(ETHERNET, &padded).unwrap().payload, 0);
}

#[test]
fn every_truncation_yields_a_segment_or_cut_short() {
    // Ethernet has 14 bytes, IP has 20, and 16 bytes of TCP matter.
    let frame = plain(10);
    for kept in 0..frame.len() {
        let expected = if kept < 14 + 20 + 16 { Err(NotASegment::CutShort) } else { Ok(10) };
        assert_eq!(cut(ETHERNET, &frame, kept).map(|s| s.payload), expected, "{kept} bytes");
    }
}

#[test]
fn ipv4_options_and_ipv6_extension_headers_are_skipped() {
    let segment = tcp(1, ACK, &[], 100);
    let with_options = ethernet(&[], 0x0800, &ipv4(6, 0, &[1; 8], &segment));
    assert_eq!(dissect(ETHERNET, &with_options).unwrap().payload, 100);
    // Hop-by-hop (8 bytes), routing (16 bytes), authentication (24 bytes: 6 words, counted as 4), then TCP.
    let hop = [&[43, 0][..], &[0; 6]].concat();
    let routing = [&[51, 1][..], &[0; 14]].concat();
    let authentication = [&[6, 4][..], &[0; 22]].concat();
    let content = [hop, routing, authentication, segment].concat();
    let frame = ethernet(&[], 0x86dd, &ipv6(0, &content));
    assert_eq!(dissect(ETHERNET, &frame).unwrap().payload, 100);
}

#[test]
fn other_protocols_are_distinguished_from_malformed_packets() {
    let udp = ethernet(&[], 0x0800, &ipv4(17, 0, &[], &[0; 30]));
    assert_eq!(dissect(ETHERNET, &udp), Err(NotASegment::NotTcp));
    let arp = ethernet(&[], 0x0806, &[0; 28]);
    assert_eq!(dissect(ETHERNET, &arp), Err(NotASegment::NotIp));
    let mut broken = plain(10);
    // A TCP header length of 8 bytes.
    broken[14 + 20 + 12] = 2 << 4;
    assert_eq!(dissect(ETHERNET, &broken), Err(NotASegment::Malformed));
    let endless = ethernet(&[0x8100; 20], 0x0800, &[]);
    assert_eq!(dissect(ETHERNET, &endless), Err(NotASegment::Malformed));
}

#[test]
fn a_fragmented_segment_has_the_length_of_all_its_fragments() {
    let whole = tcp(1, ACK, &[], 100);
    // 120 bytes in fragments of 64 and 56. Offsets count units of 8 bytes; 0x2000 is the flag for more fragments.
    let pieces = [(0x2000, &whole[..64]), (8, &whole[64..])];
    let mut dissector = Dissector::default();
    let mut dissect = |(field, piece): (u16, &[u8])| {
        let frame = ethernet(&[], 0x0800, &ipv4(6, field, &[], piece));
        let (bytes, length) = (&frame[..], frame.len());
        dissector.dissect(&Record { time: Time::ZERO, link: ETHERNET, bytes, length })
    };
    assert_eq!(dissect(pieces[0]), Err(NotASegment::Fragment));
    assert_eq!(dissect(pieces[1]).map(|s| s.payload), Ok(100));
    // A last fragment without the first yields nothing.
    assert_eq!(dissect(pieces[1]), Err(NotASegment::Fragment));
}

#[test]
fn a_later_udp_fragment_is_recognised_in_ipv4_and_ipv6() {
    let v4 = ipv4(17, 8, &[], &[0; 16]);
    // RFC 8200 §4.5: next header, reserved, offset 8 without more fragments, identification.
    let v6 = ipv6(44, &[&[17, 0, 0, 8, 0, 0, 0, 1][..], &[0; 16]].concat());
    assert_eq!(dissect(Link::Raw, &v4), Err(NotASegment::Fragment));
    assert_eq!(dissect(Link::Raw, &v6), Err(NotASegment::Fragment));
}

#[test]
fn excess_sack_blocks_are_dropped() {
    // Four blocks, and one more in another option: 44 bytes.
    let four = [&[5, 34][..], &[1; 32]].concat();
    let options = Options::read(&[&four[..], &[5, 10], &[2; 8]].concat());
    assert_eq!(options.sack().len(), 4);
    assert_eq!(options.sack()[3].left, 0x0101_0101);
}

#[test]
fn options_are_parsed_until_the_first_malformed_one() {
    let syn =
        [&[2, 4, 5, 0xb4][..], &[4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2], &[1, 3, 3, 7]].concat();
    let packet = ipv4(6, 0, &[], &tcp(1, SYN, &syn, 0));
    let options = dissect(Link::Raw, &packet).unwrap().options;
    // 0x5b4 = 1460.
    assert_eq!((options.mss, options.scale, options.sack_permitted), (Some(1460), Some(7), true));
    assert_eq!(options.timestamps, Some(Timestamps { value: 1, echo: 2 }));
    // An option length of 1 is invalid: following it would never end.
    let broken = ipv4(6, 0, &[], &tcp(1, SYN, &[3, 1, 3, 3], 0));
    assert_eq!(dissect(Link::Raw, &broken).unwrap().options.scale, None);
}

#[test]
fn truncated_options_are_marked_as_cut() {
    // A SYN of Linux: the scale follows the timestamps. Ethernet, IPv4 and TCP take 54 bytes, so `tcpdump -s 68`
    // keeps 14 of the 20 bytes of options.
    let options = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
    let frame = ethernet(&[], 0x0800, &ipv4(6, 0, &[], &tcp(1, SYN, &options, 0)));
    let read = |kept: usize| cut(ETHERNET, &frame, kept).unwrap().options;
    assert_eq!((read(68).scale, read(68).cut), (None, true));
    assert_eq!((read(74).scale, read(74).cut), (Some(7), false));
}
