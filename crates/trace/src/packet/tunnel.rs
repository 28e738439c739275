//! Tunnels: IP in IP, GRE, VXLAN, Geneve, GTP.

use super::NotASegment;
use super::link::{ethernet, tagged};

const IPV4_IN_IP: u8 = 4;
const UDP: u8 = 17;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
/// The ports of VXLAN: the assigned one (RFC 7348), and the earlier one of Linux.
const VXLAN: [u16; 2] = [4789, 8472];
/// The port of Geneve (RFC 8926).
const GENEVE: u16 = 6081;
/// The port of GTP-U (3GPP TS 29.281).
const GTP: u16 = 2152;
/// The maximum number of GTP extension headers; more are an attack.
const MAX_EXTENSIONS: usize = 8;

/// The IP packet in `content`, if `protocol` is a tunnel.
pub fn inner(protocol: u8, content: &[u8]) -> Result<&[u8], NotASegment> {
    match protocol {
        IPV4_IN_IP | IPV6_IN_IP => Ok(content),
        GRE => gre(content),
        UDP => udp(content),
        _ => Err(NotASegment::NotTcp),
    }
}

/// The packet in GRE (RFC 2784, RFC 2890).
fn gre(content: &[u8]) -> Result<&[u8], NotASegment> {
    let head: &[u8; 4] = content.first_chunk().ok_or(NotASegment::CutShort)?;
    let kind = u16::from_be_bytes([head[2], head[3]]);
    let version = head[1] & 7;
    // The checksum, key and sequence number take four bytes each, if present.
    let fields = [0x80, 0x20, 0x10].into_iter().filter(|bit| head[0] & bit != 0).count();
    let rest = content.get(4 + 4 * fields..).ok_or(NotASegment::CutShort)?;
    match (version, kind) {
        // ERSPAN types I and II carry Ethernet. Type II has a header of its own.
        (0, 0x88be) => ethernet(if fields == 0 { rest } else { rest.get(8..).unwrap_or_default() }),
        (0, kind) => tagged(kind, rest).map_err(not_tcp),
        _ => Err(NotASegment::NotTcp),
    }
}

fn udp(content: &[u8]) -> Result<&[u8], NotASegment> {
    let head: &[u8; 8] = content.first_chunk().ok_or(NotASegment::NotTcp)?;
    let ports = [[head[0], head[1]], [head[2], head[3]]].map(u16::from_be_bytes);
    let rest = &content[8..];
    if VXLAN.contains(&ports[1]) {
        // The header has eight bytes; the first one says that the network identifier is valid.
        match rest.first() {
            Some(0x08) => ethernet(rest.get(8..).ok_or(NotASegment::CutShort)?).map_err(not_tcp),
            _ => Err(NotASegment::NotTcp),
        }
    } else if ports[1] == GENEVE {
        geneve(rest)
    } else if ports.contains(&GTP) {
        gtp(rest)
    } else {
        Err(NotASegment::NotTcp)
    }
}

/// The packet in Geneve (RFC 8926 §3.4): eight bytes, and options counted in units of four bytes.
fn geneve(content: &[u8]) -> Result<&[u8], NotASegment> {
    let head: &[u8; 8] = content.first_chunk().ok_or(NotASegment::CutShort)?;
    let (version, options) = (head[0] >> 6, usize::from(head[0] & 0x3f) * 4);
    let kind = u16::from_be_bytes([head[2], head[3]]);
    let rest = content.get(8 + options..).ok_or(NotASegment::CutShort)?;
    if version != 0 {
        return Err(NotASegment::NotTcp);
    }
    tagged(kind, rest).map_err(not_tcp)
}

/// The user's packet in GTP-U version 1.
fn gtp(content: &[u8]) -> Result<&[u8], NotASegment> {
    let head: &[u8; 8] = content.first_chunk().ok_or(NotASegment::CutShort)?;
    const USER_DATA: u8 = 255;
    if head[0] >> 4 != 3 || head[1] != USER_DATA {
        return Err(NotASegment::NotTcp);
    }
    let mut at = 8;
    // If any of three flags is set, four more bytes follow. The last one is the type of the next extension header.
    if head[0] & 7 != 0 {
        at = 12;
        let mut next = content.get(11).copied().filter(|_| head[0] & 4 != 0).unwrap_or(0);
        for _ in 0..MAX_EXTENSIONS {
            if next == 0 {
                break;
            }
            let words = usize::from(*content.get(at).ok_or(NotASegment::CutShort)?);
            at += 4 * words.max(1);
            next = *content.get(at - 1).ok_or(NotASegment::CutShort)?;
        }
    }
    content.get(at..).ok_or(NotASegment::CutShort)
}

/// Treats a packet that is not IP as another protocol.
fn not_tcp(why: NotASegment) -> NotASegment {
    match why {
        NotASegment::NotIp => NotASegment::NotTcp,
        other => other,
    }
}
