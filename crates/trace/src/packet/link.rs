//! Link layers: what stands in front of IP. Numbers as in the registry of draft-ietf-opsawg-pcaplinktype.

use super::NotASegment;

/// What a captured packet begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Ethernet, with VLAN tags or without.
    Ethernet,
    /// IP itself.
    Raw,
    /// BSD loopback: four bytes of address family.
    Loopback,
    /// Linux "any" device.
    Cooked,
    /// The same, second version.
    Cooked2,
    /// Another one; its number.
    Other(u32),
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// IEEE 802.1Q, 802.1ad, and the number that switches used before it.
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Two are usual; more than this is not a packet but an attack.
const MOST_TAGS: usize = 8;

impl Link {
    /// The link layer of that number.
    pub fn from_number(number: u32) -> Link {
        match number {
            0 | 108 => Link::Loopback,
            1 => Link::Ethernet,
            12 | 14 | 101 | 228 | 229 => Link::Raw,
            113 => Link::Cooked,
            276 => Link::Cooked2,
            other => Link::Other(other),
        }
    }

    /// The IP packet in a frame.
    pub(crate) fn strip(self, frame: &[u8]) -> Result<&[u8], NotASegment> {
        match self {
            Link::Raw => Ok(frame),
            // The family's number differs among systems; IP's own version tells.
            Link::Loopback => frame.get(4..).ok_or(NotASegment::CutShort),
            Link::Ethernet => ethertype(frame, 12),
            Link::Cooked => ethertype(frame, 14),
            Link::Cooked2 => {
                let (kind, rest) = (u16_at(frame, 0)?, frame.get(20..));
                tagged(kind, rest.ok_or(NotASegment::CutShort)?)
            }
            Link::Other(_) => Err(NotASegment::UnknownLink),
        }
    }
}

/// A frame whose EtherType stands at `offset`, the last thing before its content.
fn ethertype(frame: &[u8], offset: usize) -> Result<&[u8], NotASegment> {
    let kind = u16_at(frame, offset)?;
    tagged(kind, &frame[offset + 2..])
}

/// Content of EtherType `kind`, perhaps behind VLAN tags.
fn tagged(mut kind: u16, mut rest: &[u8]) -> Result<&[u8], NotASegment> {
    for _ in 0..MOST_TAGS {
        match kind {
            IPV4 | IPV6 => return Ok(rest),
            tag if VLAN.contains(&tag) => {
                kind = u16_at(rest, 2)?;
                rest = &rest[4..];
            }
            _ => return Err(NotASegment::NotIp),
        }
    }
    Err(NotASegment::Malformed)
}

fn u16_at(bytes: &[u8], offset: usize) -> Result<u16, NotASegment> {
    let field = bytes.get(offset..).and_then(|rest| rest.first_chunk());
    field.map(|b| u16::from_be_bytes(*b)).ok_or(NotASegment::CutShort)
}
