use sweetspot_sizing::SenderReport;
use sweetspot_tcp::SackBlocks;
use sweetspot_units::{Bytes, Time};

use crate::network::Direction;
use crate::network::slab::SlabKey;

/// A packet in the network: 32 bytes that are copied, not referenced.
///
/// These are the fields common to all packets. The message for the host at the other end is a [`Header`], which is packed into
/// `body` and unpacked by [`Packet::header`].
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(8))]
pub(crate) struct Packet {
    pub flow: u32,
    /// Bytes on the wire.
    pub size: u16,
    tag: Tag,
    /// The flow's connection to which it belongs, modulo 256. A connection ignores packets of the previous one.
    pub epoch: u8,
    body: Body,
}

/// A packed [`Header`]. Only [`Header::pack`] and [`Packet::header`] know the meaning of its words.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct Body {
    long: [u64; 2],
    short: [u32; 2],
}

/// The contents of a packet, by kind.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Header {
    Data(DataHeader),
    /// A UDP datagram of cross traffic, which gets no answer.
    Datagram,
    Ack(AckHeader),
    Probe(ProbeHeader),
    Answer(AnswerHeader),
    Train(TrainHeader),
    Request(RequestHeader),
    WindowUpdate(WindowUpdateHeader),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct DataHeader {
    /// The packet's number; 0 is the SYN.
    pub number: u64,
    /// Its sending time (TSval of RFC 7323).
    pub sent: Time,
    /// Number of packets that the sender has seen acknowledged. The sink uses it to time the round trip (TSecr of RFC 7323).
    pub acknowledged: u32,
    /// CWR of RFC 3168: the sender has reacted to a congestion mark.
    pub window_reduced: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct AckHeader {
    /// The number expected next.
    pub next: u64,
    /// Sending time of the segment that it answers (TSecr of RFC 7323).
    pub echo: Time,
    /// The advertised window, packets.
    pub window: u32,
    /// ECE of RFC 3168: the sink saw a congestion mark.
    pub congestion_echo: bool,
    /// SACK blocks, if there are any.
    pub sacks: Option<SlabKey<SackBlocks>>,
}

/// A periodic probe that a sink sends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProbeHeader {
    /// Number of probes sent before it.
    pub sequence: u32,
}

/// A source's answer to a probe.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerHeader {
    /// The probe's sequence number.
    pub probe: u32,
    /// Number of answers sent before it.
    pub sequence: u32,
    pub report: SlabKey<SenderReport>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct TrainHeader {
    pub train: u32,
    /// Number of packets of this train sent before it.
    pub index: u32,
}

/// A sink's request to its source. The source looks up the requested value by this number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestHeader {
    pub number: u64,
}

/// An ACK that a sink sends on its own because its window has opened (RFC 9293 section 3.8.6.2.2).
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowUpdateHeader {
    /// The number expected next.
    pub next: u64,
    /// The advertised window, packets.
    pub window: u32,
}

/// The ECN field of the IP header as a host sets it (RFC 3168 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum Ecn {
    /// Routers must not mark it.
    #[default]
    NotCapable = 0,
    /// ECT(0): routers may mark it.
    Capable = Tag::CAPABLE,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum PacketKind {
    Data = 0,
    Datagram = 1,
    Answer = 2,
    Train = 3,
    Ack = Tag::TO_SOURCE,
    Probe = Tag::TO_SOURCE | 1,
    Request = Tag::TO_SOURCE | 2,
    WindowUpdate = Tag::TO_SOURCE | 3,
}

/// Kind, direction and ECN field in one byte.
///
/// This is not an enum. The compiler would use an enum's unused values to distinguish `Some(packet)` from `None`, and would
/// then copy packets in pieces around that byte.
#[derive(Debug, Clone, Copy, Default)]
struct Tag(u8);

impl Tag {
    const KIND: u8 = 0b111;
    /// Set in kinds that go from a flow's sink to its source.
    const TO_SOURCE: u8 = 1 << 2;
    /// ECT(0).
    const CAPABLE: u8 = 1 << 3;
    /// CE: a router marked it.
    const MARKED: u8 = 1 << 4;
    /// Set if the packet crosses the hops backward.
    const BACKWARD: u8 = 1 << 7;

    #[inline(always)]
    fn new(kind: PacketKind, data_direction: Direction, ecn: Ecn) -> Tag {
        let to_source = kind as u8 & Tag::TO_SOURCE != 0;
        let backward = (data_direction == Direction::Forward) == to_source;
        Tag(kind as u8 | ecn as u8 | if backward { Tag::BACKWARD } else { 0 })
    }
}

impl Header {
    #[inline(always)]
    fn pack(self) -> (PacketKind, Body) {
        let body = |long: [u64; 2], short: [u32; 2]| Body { long, short };
        match self {
            Header::Data(DataHeader { number, sent, acknowledged, window_reduced }) => (
                PacketKind::Data,
                body([number, sent.as_nanos()], [acknowledged, u32::from(window_reduced)]),
            ),
            Header::Datagram => (PacketKind::Datagram, Body::default()),
            Header::Ack(AckHeader { next, echo, window, congestion_echo, sacks }) => {
                let echoed = if congestion_echo { CONGESTION_ECHO } else { 0 };
                let flags = SlabKey::pack(sacks) | echoed;
                (PacketKind::Ack, body([next, echo.as_nanos()], [window, flags]))
            }
            Header::Probe(ProbeHeader { sequence }) => {
                (PacketKind::Probe, body([0, 0], [sequence, 0]))
            }
            Header::Answer(AnswerHeader { probe, sequence, report }) => {
                (PacketKind::Answer, body([u64::from(probe), 0], [sequence, report.index()]))
            }
            Header::Train(TrainHeader { train, index }) => {
                (PacketKind::Train, body([0, 0], [train, index]))
            }
            Header::Request(RequestHeader { number }) => {
                (PacketKind::Request, body([number, 0], [0, 0]))
            }
            Header::WindowUpdate(WindowUpdateHeader { next, window }) => {
                (PacketKind::WindowUpdate, body([next, 0], [window, 0]))
            }
        }
    }
}

/// The bit next to an ACK's packed key.
const CONGESTION_ECHO: u32 = 1 << 31;

/// Bytes of a segment without payload and options on the wire: 20 of IP, 20 of TCP.
pub(crate) const BARE_SEGMENT: u16 = 40;

impl Packet {
    /// A packet of `flow`; the flow's data go in `data_direction`.
    #[inline(always)]
    pub(crate) fn new(
        (flow, data_direction, epoch): (u32, Direction, u8),
        size: u16,
        ecn: Ecn,
        header: Header,
    ) -> Packet {
        let (kind, body) = header.pack();
        Packet { flow, size, tag: Tag::new(kind, data_direction, ecn), epoch, body }
    }

    #[inline(always)]
    pub(crate) fn header(&self) -> Header {
        let Body { long: [first, second], short: [third, fourth] } = self.body;
        match self.kind() {
            PacketKind::Data => Header::Data(DataHeader {
                number: first,
                sent: Time::from_nanos(second),
                acknowledged: third,
                window_reduced: fourth != 0,
            }),
            PacketKind::Datagram => Header::Datagram,
            PacketKind::Answer => Header::Answer(AnswerHeader {
                probe: first as u32,
                sequence: third,
                report: SlabKey::new(fourth),
            }),
            PacketKind::Train => Header::Train(TrainHeader { train: third, index: fourth }),
            PacketKind::Ack => Header::Ack(AckHeader {
                next: first,
                echo: Time::from_nanos(second),
                window: third,
                congestion_echo: fourth & CONGESTION_ECHO != 0,
                sacks: SlabKey::unpack(fourth & !CONGESTION_ECHO),
            }),
            PacketKind::Probe => Header::Probe(ProbeHeader { sequence: third }),
            PacketKind::Request => Header::Request(RequestHeader { number: first }),
            PacketKind::WindowUpdate => {
                Header::WindowUpdate(WindowUpdateHeader { next: first, window: third })
            }
        }
    }

    #[inline(always)]
    pub(crate) fn kind(&self) -> PacketKind {
        match self.tag.0 & Tag::KIND {
            0 => PacketKind::Data,
            1 => PacketKind::Datagram,
            2 => PacketKind::Answer,
            3 => PacketKind::Train,
            4 => PacketKind::Ack,
            5 => PacketKind::Probe,
            6 => PacketKind::Request,
            _ => PacketKind::WindowUpdate,
        }
    }

    #[inline]
    pub(crate) fn direction(&self) -> Direction {
        if self.tag.0 & Tag::BACKWARD == 0 { Direction::Forward } else { Direction::Backward }
    }

    /// Whether it travels in its flow's data direction, to the flow's sink.
    #[inline]
    pub(crate) fn goes_to_sink(&self) -> bool {
        self.tag.0 & Tag::TO_SOURCE == 0
    }

    /// Whether a router marked it (CE).
    #[inline]
    pub(crate) fn is_marked(&self) -> bool {
        self.tag.0 & Tag::MARKED != 0
    }
}

impl sweetspot_path::Packet for Packet {
    #[inline]
    fn wire_size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }

    fn flow(&self) -> u64 {
        u64::from(self.flow) << 1 | u64::from(self.goes_to_sink())
    }

    fn mark_ecn(&mut self) -> bool {
        if self.tag.0 & Tag::CAPABLE != 0 {
            self.tag.0 |= Tag::MARKED;
        }
        self.is_marked()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sweetspot_path::Packet as _;

    use super::*;

    fn headers() -> impl Strategy<Value = Header> {
        let key = 0..i32::MAX as u32;
        let data = (any::<u64>(), any::<u64>(), any::<u32>(), any::<bool>());
        let ack = (any::<u64>(), any::<u64>(), any::<u32>(), any::<bool>(), key.clone());
        prop_oneof![
            Just(Header::Datagram),
            data.prop_map(|(number, sent, acknowledged, window_reduced)| {
                let sent = Time::from_nanos(sent);
                Header::Data(DataHeader { number, sent, acknowledged, window_reduced })
            }),
            ack.prop_map(|(next, echo, window, congestion_echo, key)| {
                let echo = Time::from_nanos(echo);
                let sacks = key.checked_sub(1).map(SlabKey::new);
                Header::Ack(AckHeader { next, echo, window, congestion_echo, sacks })
            }),
            any::<u32>().prop_map(|sequence| Header::Probe(ProbeHeader { sequence })),
            (any::<u32>(), any::<u32>(), key).prop_map(|(probe, sequence, key)| {
                Header::Answer(AnswerHeader { probe, sequence, report: SlabKey::new(key) })
            }),
            any::<(u32, u32)>()
                .prop_map(|(train, index)| Header::Train(TrainHeader { train, index })),
            any::<u64>().prop_map(|number| Header::Request(RequestHeader { number })),
        ]
    }

    proptest! {
        #[test]
        fn a_packet_returns_its_header_unchanged(
            header in headers(), forward in any::<bool>(), capable in any::<bool>(),
        ) {
            let direction = if forward { Direction::Forward } else { Direction::Backward };
            let ecn = if capable { Ecn::Capable } else { Ecn::NotCapable };
            let mut packet = Packet::new((7, direction, 3), 1500, ecn, header);
            prop_assert_eq!(format!("{:?}", packet.header()), format!("{header:?}"));
            // Packets to the sink go in the data direction, packets to the source in the other.
            prop_assert_eq!(packet.direction() == direction, packet.goes_to_sink());
            let to_source = [PacketKind::Ack, PacketKind::Probe, PacketKind::Request];
            prop_assert_eq!(packet.goes_to_sink(), !to_source.contains(&packet.kind()));
            // A mark changes nothing else, and only ECN-capable packets can be marked.
            prop_assert!(!packet.is_marked());
            prop_assert_eq!(packet.mark_ecn(), capable);
            prop_assert_eq!(packet.is_marked(), capable);
            prop_assert_eq!(format!("{:?}", packet.header()), format!("{header:?}"));
            prop_assert_eq!(packet.direction() == direction, packet.goes_to_sink());
        }
    }

    #[test]
    fn a_packet_is_half_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 32);
    }
}
