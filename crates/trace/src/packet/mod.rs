//! Finds the TCP segment in a captured packet.

mod fragments;
mod ip;
mod link;
mod options;
mod record;
mod segment;
mod tunnel;

pub use link::{Link, Radio};
pub use options::{Options, SackBlock, Timestamps};
pub use record::Record;
pub use segment::{Flags, Segment};

use self::fragments::Fragments;
use self::ip::{Packet, Part, TCP};

/// Why a packet yields no segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotASegment {
    /// The link layer is not supported.
    UnknownLink,
    /// The packet is not IP.
    NotIp,
    /// The packet is IP, but not TCP.
    NotTcp,
    /// The packet is a fragment; the last fragment yields the segment.
    Fragment,
    /// The capture cut off a part of the TCP header.
    CutShort,
    /// The packet's lengths contradict each other.
    Malformed,
}

/// The number of packets by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketCounts {
    /// All packets.
    pub packets: u64,
    /// TCP segments.
    pub segments: u64,
    /// Packets with an unsupported link layer.
    pub unknown_link: u64,
    /// Packets of other protocols.
    pub not_tcp: u64,
    /// Fragments.
    pub fragments: u64,
    /// Packets cut so short that the TCP header is incomplete.
    pub cut_short: u64,
    /// Packets with contradictory headers.
    pub malformed: u64,
}

/// Extracts segments from packets. It keeps some fragments, because the length of a fragmented segment is the sum over its
/// fragments.
#[derive(Debug, Default)]
pub struct Dissector {
    fragments: Fragments,
    counts: PacketCounts,
}

impl Dissector {
    /// The segment in `record`, if it has one.
    pub fn dissect(&mut self, record: &Record<'_>) -> Result<Segment, NotASegment> {
        let result = self.try_dissect(record);
        let t = &mut self.counts;
        t.packets += 1;
        *match result {
            Ok(_) => &mut t.segments,
            Err(NotASegment::UnknownLink) => &mut t.unknown_link,
            Err(NotASegment::NotIp | NotASegment::NotTcp) => &mut t.not_tcp,
            Err(NotASegment::Fragment) => &mut t.fragments,
            Err(NotASegment::CutShort) => &mut t.cut_short,
            Err(NotASegment::Malformed) => &mut t.malformed,
        } += 1;
        result
    }

    /// The counts so far.
    pub fn counts(&self) -> PacketCounts {
        self.counts
    }

    fn try_dissect(&mut self, record: &Record<'_>) -> Result<Segment, NotASegment> {
        let packet = record.link.strip(record.bytes)?;
        let mut ip = read(record, packet)?;
        for _ in 0..MAX_TUNNELS {
            if ip.protocol == TCP {
                return self.assemble(record, &ip);
            }
            if matches!(ip.part, Part::Later { .. }) {
                return Err(NotASegment::Fragment);
            }
            ip = read(record, tunnel::inner(ip.protocol, ip.content)?)?;
        }
        Err(NotASegment::NotTcp)
    }

    /// The segment in `ip`, unless the packet is a fragment.
    fn assemble(&mut self, record: &Record<'_>, ip: &Packet<'_>) -> Result<Segment, NotASegment> {
        match ip.part {
            Part::Whole => segment::read(record.time, ip),
            Part::First { .. } => {
                let segment = segment::read(record.time, ip)?;
                self.fragments.begin(ip, segment);
                Err(NotASegment::Fragment)
            }
            Part::Later { .. } => match self.fragments.end(ip) {
                Some(segment) => Ok(Segment { time: record.time, ..segment }),
                None => Err(NotASegment::Fragment),
            },
        }
    }
}

/// The maximum number of nested tunnels; more are an attack.
const MAX_TUNNELS: usize = 4;

/// The IP packet that begins `packet`, the last bytes of `record`.
fn read<'a>(record: &Record<'_>, packet: &'a [u8]) -> Result<Packet<'a>, NotASegment> {
    // The link layer's header is part of the length on the wire, so it is subtracted. A trailer counts as payload only if the
    // IP header does not give the packet's length.
    let header = record.bytes.len().saturating_sub(packet.len());
    ip::read(packet, record.length.saturating_sub(header))
}
