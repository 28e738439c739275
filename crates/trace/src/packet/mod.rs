//! From a captured packet to the TCP segment in it.

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

/// Why a packet is not a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotASegment {
    /// Its link layer is not known here.
    UnknownLink,
    /// It is not IP.
    NotIp,
    /// It is IP, but not TCP.
    NotTcp,
    /// A part of a packet: the segment comes with the last one.
    Fragment,
    /// The capture cut off a part of its TCP header.
    CutShort,
    /// Its lengths contradict one another.
    Malformed,
}

/// How many packets were what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketCounts {
    /// All.
    pub packets: u64,
    /// TCP segments.
    pub segments: u64,
    /// Of an unknown link layer.
    pub unknown_link: u64,
    /// Other protocols.
    pub not_tcp: u64,
    /// Fragments.
    pub fragments: u64,
    /// Cut so short that the TCP header is not whole.
    pub cut_short: u64,
    /// Headers that contradict themselves.
    pub malformed: u64,
}

/// Takes packets apart. It remembers a few fragments, because a segment that came in pieces is
/// as long as all of them.
#[derive(Debug, Default)]
pub struct Dissector {
    fragments: Fragments,
    counts: PacketCounts,
}

impl Dissector {
    /// The segment in `record`, if there is one.
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

    /// The segment in `ip`, unless that is a part of its packet.
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

/// Tunnels in tunnels; more is an attack.
const MAX_TUNNELS: usize = 4;

/// The IP packet that begins with `packet`, the last bytes of `record`.
fn read<'a>(record: &Record<'_>, packet: &'a [u8]) -> Result<Packet<'a>, NotASegment> {
    // The link layer's overhead, also in the length on the wire; a trailer counts as payload only if the IP header does not
    // give the packet's length.
    let header = record.bytes.len().saturating_sub(packet.len());
    ip::read(packet, record.length.saturating_sub(header))
}
