use std::net::SocketAddr;

use sweetspot_units::Time;

use super::ip::Packet;
use super::{NotASegment, Options};

/// The flags of a TCP header that matter here (RFC 9293 §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// The sender sends no more data.
    pub fin: bool,
    /// The connection begins.
    pub syn: bool,
    /// The connection is aborted.
    pub rst: bool,
    /// The application's write ends here: no more data are queued.
    pub psh: bool,
    /// The acknowledgement number is valid.
    pub ack: bool,
}

/// A TCP segment, without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// When it was captured.
    pub time: Time,
    /// The address of the sender.
    pub source: SocketAddr,
    /// The address of the receiver.
    pub destination: SocketAddr,
    /// The sequence number of the first byte.
    pub seq: u32,
    /// The acknowledgement number: the next byte that its sender expects.
    pub ack: u32,
    /// The flags.
    pub flags: Flags,
    /// The window field of the header, not scaled.
    pub window: u16,
    /// The payload on the wire in bytes, captured or not.
    pub payload: u32,
    /// The length of the TCP header in bytes.
    pub header: u8,
    /// The options, as far as they were captured.
    pub options: Options,
    /// The identification of the IPv4 packet. Two equal packets with the same identification are one packet, captured twice.
    pub id: Option<u16>,
    /// The TTL or hop limit of the packet when it was captured.
    pub ttl: u8,
}

impl Segment {
    /// Whether no router has forwarded the packet yet: its TTL is a common initial value (64 by RFC 1700, 128 of Windows, 255
    /// of routers, 32 of older hosts). 60, also an initial value, does not count: it may be four hops from 64.
    pub fn is_local(&self) -> bool {
        matches!(self.ttl, 32 | 64 | 128 | 255)
    }
}

/// The ports, numbers, flags and window; the checksum and urgent pointer may be cut off.
const MIN: usize = 16;

pub fn read(time: Time, ip: &Packet<'_>) -> Result<Segment, NotASegment> {
    let head: &[u8; MIN] = ip.content.first_chunk().ok_or(NotASegment::CutShort)?;
    let header = usize::from(head[12] >> 4) * 4;
    if header < 20 || header > ip.length {
        return Err(NotASegment::Malformed);
    }
    let payload = u32::try_from(ip.length - header).map_err(|_| NotASegment::Malformed)?;
    let half = |i: usize| u16::from_be_bytes([head[i], head[i + 1]]);
    let word = |i: usize| u32::from_be_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
    let bit = |n: u8| head[13] & (1 << n) != 0;
    let captured = ip.content.get(20..header.min(ip.content.len())).unwrap_or_default();
    let mut options = Options::read(captured);
    options.cut = captured.len() < header - 20;
    Ok(Segment {
        time,
        source: SocketAddr::new(ip.source, half(0)),
        destination: SocketAddr::new(ip.destination, half(2)),
        seq: word(4),
        ack: word(8),
        flags: Flags { fin: bit(0), syn: bit(1), rst: bit(2), psh: bit(3), ack: bit(4) },
        window: half(14),
        payload,
        header: header as u8,
        options,
        id: ip.id,
        ttl: ip.ttl,
    })
}
