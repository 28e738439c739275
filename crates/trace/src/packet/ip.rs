//! IPv4 (RFC 791) and IPv6 (RFC 8200), as far as needed to locate the TCP segment.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::NotASegment;

/// TCP's protocol number.
pub const TCP: u8 = 6;
/// The maximum number of IPv6 extension headers; a longer chain is an attack.
const MAX_EXTENSIONS: usize = 16;

/// An IP packet without its headers.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// The protocol number of the payload (IANA).
    pub protocol: u8,
    /// The captured part of the payload.
    pub content: &'a [u8],
    /// The length of the payload on the wire.
    pub length: usize,
    pub part: Part,
    /// The IPv4 identification.
    pub id: Option<u16>,
    /// The TTL or hop limit.
    pub ttl: u8,
}

/// The part of a packet that this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Whole,
    /// The first fragment of the packet with this identification.
    First {
        id: u32,
    },
    /// A later fragment.
    Later {
        id: u32,
        offset: usize,
        last: bool,
    },
}

/// Reads a packet with `length` bytes on the wire.
pub fn read(packet: &[u8], length: usize) -> Result<Packet<'_>, NotASegment> {
    match packet.first().ok_or(NotASegment::CutShort)? >> 4 {
        4 => version_4(packet, length),
        6 => version_6(packet, length),
        _ => Err(NotASegment::NotIp),
    }
}

fn version_4(packet: &[u8], on_wire: usize) -> Result<Packet<'_>, NotASegment> {
    let head: &[u8; 20] = packet.first_chunk().ok_or(NotASegment::CutShort)?;
    let header = usize::from(head[0] & 0xf) * 4;
    let total = match usize::from(u16::from_be_bytes([head[2], head[3]])) {
        // The length is zero if the device fills it in later (segmentation offload).
        0 => on_wire,
        total => total,
    };
    if header < 20 || total < header {
        return Err(NotASegment::Malformed);
    }
    let id = u16::from_be_bytes([head[4], head[5]]);
    let fragment = u16::from_be_bytes([head[6], head[7]]);
    let part = part(id.into(), usize::from(fragment & 0x1fff) * 8, fragment & 0x2000 != 0);
    let address = |i: usize| Ipv4Addr::new(head[i], head[i + 1], head[i + 2], head[i + 3]).into();
    Ok(Packet {
        source: address(12),
        destination: address(16),
        protocol: head[9],
        content: within(packet, header, total)?,
        length: total - header,
        part,
        id: Some(id),
        ttl: head[8],
    })
}

fn version_6(packet: &[u8], on_wire: usize) -> Result<Packet<'_>, NotASegment> {
    let head: &[u8; 40] = packet.first_chunk().ok_or(NotASegment::CutShort)?;
    let total = match usize::from(u16::from_be_bytes([head[4], head[5]])) {
        // The length is zero for a jumbogram (RFC 2675), or with segmentation offload.
        0 => on_wire,
        payload => 40 + payload,
    };
    let address = |i: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&head[i..i + 16]);
        IpAddr::from(Ipv6Addr::from(octets))
    };
    let (source, destination) = (address(8), address(24));
    let mut kind = head[6];
    let mut at = 40;
    let mut whole = Part::Whole;
    for _ in 0..MAX_EXTENSIONS {
        let next = || packet.get(at..).and_then(|rest| rest.first_chunk::<8>());
        match kind {
            // The fragment header (RFC 8200 §4.5).
            44 => {
                let next = next().ok_or(NotASegment::CutShort)?;
                let field = u16::from_be_bytes([next[2], next[3]]);
                let id = u32::from_be_bytes([next[4], next[5], next[6], next[7]]);
                whole = part(id, usize::from(field & 0xfff8), field & 1 != 0);
                kind = next[0];
                at += 8;
                // A later fragment has only payload, whatever the number of the next header says.
                if matches!(whole, Part::Later { .. }) && kind != TCP {
                    return Err(NotASegment::Fragment);
                }
            }
            // Hop-by-hop, routing and destination options, mobility, HIP and shim6: the length counts units of 8
            // bytes.
            0 | 43 | 60 | 135 | 139 | 140 => {
                let next = next().ok_or(NotASegment::CutShort)?;
                kind = next[0];
                at += (usize::from(next[1]) + 1) * 8;
            }
            // The authentication header (RFC 4302): the length counts units of 4 bytes.
            51 => {
                let next = next().ok_or(NotASegment::CutShort)?;
                kind = next[0];
                at += (usize::from(next[1]) + 2) * 4;
            }
            protocol => {
                let content = within(packet, at, total)?;
                return Ok(Packet {
                    source,
                    destination,
                    protocol,
                    content,
                    length: total - at,
                    part: whole,
                    id: None,
                    ttl: head[7],
                });
            }
        }
    }
    Err(NotASegment::Malformed)
}

fn part(id: u32, offset: usize, more: bool) -> Part {
    match (offset, more) {
        (0, false) => Part::Whole,
        (0, true) => Part::First { id },
        _ => Part::Later { id, offset, last: !more },
    }
}

/// The captured bytes from `start` to `end`. Ethernet padding may follow them.
fn within(packet: &[u8], start: usize, end: usize) -> Result<&[u8], NotASegment> {
    if start > end {
        return Err(NotASegment::Malformed);
    }
    packet.get(start..end.min(packet.len())).ok_or(NotASegment::CutShort)
}
