//! A frame's headers: their positions, and the fields that depend on its length.

use sweetspot_linux::packet::{PartialChecksum, Transport};

use crate::checksum::fold;
use crate::veth::ETHERNET_HEADER;

/// Positions of the Ethernet type, and of the fields of the IPv4 header (RFC 791).
pub(super) const ETHER_TYPE: usize = 12;
pub(super) const IPV4: u16 = 0x0800;
pub(super) const IP_LENGTH: usize = ETHERNET_HEADER + 2;
pub(super) const IP_ID: usize = ETHERNET_HEADER + 4;
pub(super) const IP_FRAGMENT: usize = ETHERNET_HEADER + 6;
pub(super) const IP_PROTOCOL: usize = ETHERNET_HEADER + 9;
pub(super) const IP_CHECKSUM: usize = ETHERNET_HEADER + 10;
pub(super) const IP_ADDRESSES: std::ops::Range<usize> = ETHERNET_HEADER + 12..ETHERNET_HEADER + 20;
/// Mask of the "more fragments" flag and the fragment offset.
pub(super) const FRAGMENTED: u16 = 0x3fff;
/// Fields of TCP's header (RFC 9293) and UDP's (RFC 768), relative to its beginning.
pub(super) const TCP_SEQUENCE: usize = 4;
pub(super) const TCP_FLAGS: usize = 13;
pub(super) const FIN: u8 = 0x01;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;
pub(super) const CWR: u8 = 0x80;
pub(super) const UDP_LENGTH: usize = 4;

/// Positions of a frame's headers and payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub transport: Transport,
    /// Position of the transport header.
    pub begin: usize,
    pub payload: usize,
}

impl Layout {
    /// The layout of an unfragmented TCP or UDP packet over IPv4 with a partial checksum; `None` for other frames.
    pub fn of(frame: &[u8], checksum: Option<PartialChecksum>) -> Option<Layout> {
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

    /// Position of the checksum in the transport header.
    pub fn checksum(self) -> usize {
        match self.transport {
            Transport::Tcp => 16,
            Transport::Udp => 6,
        }
    }

    /// Writes the headers for `payload` bytes: the lengths, the IPv4 checksum, and the pseudo-header's sum if the
    /// transport checksum is left to a card.
    pub fn write_lengths(self, headers: &mut [u8], payload: usize) {
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
    pub fn pseudo_header(self, headers: &[u8], datagram: usize) -> u16 {
        let addresses: u32 = sum(&headers[IP_ADDRESSES]).into();
        fold(addresses + u32::from(headers[IP_PROTOCOL]) + datagram as u32)
    }
}

pub(super) fn word(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

/// Writes the low 16 bits of `number`. Only counters exceed 16 bits, not lengths.
pub(super) fn put(frame: &mut [u8], at: usize, number: usize) {
    frame[at..at + 2].copy_from_slice(&(number as u16).to_be_bytes());
}

pub(super) fn sequence(frame: &[u8], layout: Layout) -> u32 {
    let bytes = frame[layout.begin + TCP_SEQUENCE..].first_chunk();
    bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// The ones' complement sum of a header's 16-bit words (RFC 1071).
pub(super) fn sum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2);
    fold(words.map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum())
}
