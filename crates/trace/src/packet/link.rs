//! Link layers, by the numbers of draft-ietf-opsawg-pcaplinktype.

use super::NotASegment;

/// The link layer of a captured packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Ethernet, with or without VLAN tags, MPLS labels and PPPoE.
    Ethernet,
    /// IP without a link-layer header.
    Raw,
    /// BSD loopback: four bytes of address family.
    Loopback,
    /// The Linux "any" device.
    Cooked,
    /// The Linux "any" device, second version.
    Cooked2,
    /// PPP, with or without HDLC-like framing.
    Ppp,
    /// FDDI, with LLC inside.
    Fddi,
    /// IEEE 802.11.
    Wifi,
    /// IEEE 802.11 after a header that this kind of radio adds.
    Radio(Radio),
    /// OpenBSD's pf log.
    PfLog,
    /// The encapsulation device of OpenBSD.
    Enc,
    /// Token Ring, with LLC inside.
    TokenRing,
    /// SLIP after 16 bytes: the direction and the compressed header.
    Slip,
    /// Cisco HDLC: two bytes, then an EtherType.
    CiscoHdlc,
    /// ATM adaptation layer 5 (RFC 2684): LLC, or IP directly.
    Atm,
    /// PPPoE session packets without Ethernet.
    PppEther,
    /// A stack of MPLS labels.
    Mpls,
    /// IP over FireWire (RFC 2734): two long addresses, then an EtherType.
    FireWire,
    /// Linux's netfilter log: type-length-values.
    NetfilterLog,
    /// Apple's packet tap, which names the link layer inside.
    PacketTap,
    /// Another link layer, with its number.
    Other(u32),
}

/// Headers that radios add in front of IEEE 802.11.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Radio {
    /// Radiotap and PPI: the length is in bytes 2 and 3, little-endian.
    Tap,
    /// Prism: 144 bytes.
    Prism,
    /// AVS: the length is in bytes 4 to 7, big-endian.
    Avs,
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TRANSPARENT_ETHERNET: u16 = 0x6558;
const PPP_SESSION: u16 = 0x8864;
/// The EtherTypes of MPLS, unicast and multicast (RFC 3032, RFC 5332).
const MPLS: [u16; 2] = [0x8847, 0x8848];
/// The EtherTypes of VLAN tags: IEEE 802.1Q, 802.1ad, and the earlier number of switches.
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Below this value, an EtherType is a length, and LLC follows (IEEE 802.3).
const MIN_ETHERTYPE: u16 = 0x0600;
/// The maximum number of tags. Two are usual; more than this are an attack.
const MAX_TAGS: usize = 8;
/// LLC and SNAP, followed by an EtherType (RFC 1042).
const SNAP: [u8; 3] = [0xaa, 0xaa, 0x03];

impl Link {
    /// The link layer with this number.
    pub fn from_number(number: u32) -> Link {
        match number {
            0 | 108 => Link::Loopback,
            1 => Link::Ethernet,
            6 => Link::TokenRing,
            8 => Link::Slip,
            11 | 100 => Link::Atm,
            51 => Link::PppEther,
            104 => Link::CiscoHdlc,
            138 => Link::FireWire,
            149 | 258 => Link::PacketTap,
            219 => Link::Mpls,
            239 => Link::NetfilterLog,
            9 | 50 | 166 | 204 => Link::Ppp,
            10 => Link::Fddi,
            12 | 14 | 101 | 228 | 229 => Link::Raw,
            105 => Link::Wifi,
            109 => Link::Enc,
            113 => Link::Cooked,
            117 => Link::PfLog,
            119 => Link::Radio(Radio::Prism),
            127 | 192 => Link::Radio(Radio::Tap),
            163 => Link::Radio(Radio::Avs),
            276 => Link::Cooked2,
            other => Link::Other(other),
        }
    }

    pub(crate) fn strip(self, frame: &[u8]) -> Result<&[u8], NotASegment> {
        match self {
            Link::Raw => Ok(frame),
            // The family's number depends on the system; the IP header shows its version.
            Link::Loopback => behind(frame, 4),
            Link::Ethernet => ethernet(frame),
            Link::Cooked => ethertype(frame, 14),
            Link::Cooked2 => tagged(u16_at(frame, 0)?, behind(frame, 20)?),
            Link::Ppp => ppp(frame),
            // Frame control and two addresses precede LLC.
            Link::Fddi => llc(behind(frame, 13)?),
            Link::Wifi => wifi(frame),
            Link::Radio(radio) => wifi(behind(frame, radio.header(frame)?)?),
            // The first byte is the header's length, which is padded to a multiple of four.
            Link::PfLog => {
                let length = frame.first().ok_or(NotASegment::CutShort)?;
                behind(frame, usize::from(*length).next_multiple_of(4))
            }
            Link::Enc => behind(frame, 12),
            Link::TokenRing => llc(behind(frame, token_ring_header(frame)?)?),
            Link::Slip => behind(frame, 16),
            Link::CiscoHdlc => ethertype(frame, 2),
            Link::Atm => match frame.first_chunk::<3>() {
                Some(&SNAP) => llc(frame),
                _ => Ok(frame),
            },
            // Six bytes precede PPP (RFC 2516 §4).
            Link::PppEther => ppp(behind(frame, 6)?),
            Link::Mpls => labelled(frame),
            Link::FireWire => ethertype(frame, 16),
            Link::NetfilterLog => netfilter_log(frame),
            Link::PacketTap => packet_tap(frame),
            Link::Other(_) => Err(NotASegment::UnknownLink),
        }
    }
}

impl Radio {
    fn header(self, frame: &[u8]) -> Result<usize, NotASegment> {
        match self {
            Radio::Tap => Ok(u16_at(frame, 2)?.swap_bytes().into()),
            Radio::Prism => Ok(144),
            // The upper half of the length is not needed.
            Radio::Avs => Ok(u16_at(frame, 6)?.into()),
        }
    }
}

pub(crate) fn ethernet(frame: &[u8]) -> Result<&[u8], NotASegment> {
    ethertype(frame, 12)
}

/// A frame with its EtherType at `offset`, right before its payload.
fn ethertype(frame: &[u8], offset: usize) -> Result<&[u8], NotASegment> {
    let kind = u16_at(frame, offset)?;
    tagged(kind, &frame[offset + 2..])
}

/// The content of EtherType `kind`, after any VLAN tags, labels or PPPoE.
pub(crate) fn tagged(mut kind: u16, mut rest: &[u8]) -> Result<&[u8], NotASegment> {
    for _ in 0..MAX_TAGS {
        match kind {
            IPV4 | IPV6 => return Ok(rest),
            TRANSPARENT_ETHERNET => {
                kind = u16_at(rest, 12)?;
                rest = &rest[14..];
            }
            // Six bytes precede PPP (RFC 2516 §4).
            PPP_SESSION => return ppp(behind(rest, 6)?),
            tag if VLAN.contains(&tag) => {
                kind = u16_at(rest, 2)?;
                rest = &rest[4..];
            }
            label if MPLS.contains(&label) => return labelled(rest),
            length if length < MIN_ETHERTYPE => return llc(rest),
            _ => return Err(NotASegment::NotIp),
        }
    }
    Err(NotASegment::Malformed)
}

/// The payload after a stack of MPLS labels. Labels do not name its protocol: it is IP, or Ethernet after an optional control
/// word (RFC 4385).
fn labelled(mut rest: &[u8]) -> Result<&[u8], NotASegment> {
    for _ in 0..MAX_TAGS {
        let label: &[u8; 4] = rest.first_chunk().ok_or(NotASegment::CutShort)?;
        rest = &rest[4..];
        if label[2] & 1 == 1 {
            return match rest.first().ok_or(NotASegment::CutShort)? >> 4 {
                4 | 6 => Ok(rest),
                0 => ethernet(behind(rest, 4)?).or_else(|_| ethernet(rest)),
                _ => ethernet(rest),
            };
        }
    }
    Err(NotASegment::Malformed)
}

/// The length of two bytes, two addresses and an optional route. The first bit of the second address announces a route; the
/// route's first byte has its length (IEEE 802.5).
fn token_ring_header(frame: &[u8]) -> Result<usize, NotASegment> {
    const PLAIN: usize = 14;
    let [.., source] = frame.first_chunk::<9>().ok_or(NotASegment::CutShort)?;
    let route = frame.get(PLAIN).map_or(0, |first| usize::from(first & 0x1f));
    Ok(if source & 0x80 == 0 { PLAIN } else { PLAIN + route })
}

/// Four bytes, followed by type-length-values. Each value comes after its length and type in the host's byte order, and is
/// padded to a multiple of four. Type nine is the packet (nfnetlink_log.h).
fn netfilter_log(frame: &[u8]) -> Result<&[u8], NotASegment> {
    const PAYLOAD: u16 = 9;
    let mut rest = behind(frame, 4)?;
    loop {
        let (length, kind) = (u16_at(rest, 0)?, u16_at(rest, 2)?);
        // If the type is in the lower byte, the host was little-endian.
        let little = kind & 0xff == 0;
        let order = |n: u16| if little { n.swap_bytes() } else { n };
        let length = usize::from(order(length));
        if length < 4 {
            return Err(NotASegment::Malformed);
        }
        if order(kind) == PAYLOAD {
            return Ok(&rest[4..length.clamp(4, rest.len().max(4))]);
        }
        rest = behind(rest, length.next_multiple_of(4))?;
    }
}

/// The header has its length, the record type (1: a packet) and the link layer inside, all little-endian.
fn packet_tap(frame: &[u8]) -> Result<&[u8], NotASegment> {
    let word = |at: usize| {
        let bytes = frame.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map(|bytes| u32::from_le_bytes(*bytes)).ok_or(NotASegment::CutShort)
    };
    match Link::from_number(word(8)?) {
        Link::PacketTap => Err(NotASegment::Malformed),
        inner => inner.strip(behind(frame, word(0)? as usize)?),
    }
}

/// The content of LLC and SNAP.
fn llc(rest: &[u8]) -> Result<&[u8], NotASegment> {
    match rest.first_chunk::<3>() {
        None => Err(NotASegment::CutShort),
        Some(head) if *head == SNAP => ethertype(rest, 6),
        Some(_) => Err(NotASegment::NotIp),
    }
}

/// The content of PPP (RFC 1661), with or without HDLC's address and control fields (RFC 1662).
fn ppp(rest: &[u8]) -> Result<&[u8], NotASegment> {
    const HDLC: [u8; 2] = [0xff, 0x03];
    let rest = rest.strip_prefix(&HDLC).unwrap_or(rest);
    // On a serial line, a byte with the direction precedes these fields.
    let rest = match rest {
        [0 | 1, 0xff, 0x03, inner @ ..] => inner,
        other => other,
    };
    match (rest.first().ok_or(NotASegment::CutShort)?, rest.get(1)) {
        // The protocol may be compressed to one byte (RFC 1661 §6.5).
        (0x21 | 0x57, _) => behind(rest, 1),
        (0, Some(0x21 | 0x57)) => behind(rest, 2),
        // The protocol is MPLS (RFC 3032 §4.3).
        (2, Some(0x81 | 0x83)) => labelled(behind(rest, 2)?),
        (0, None) => Err(NotASegment::CutShort),
        _ => Err(NotASegment::NotIp),
    }
}

/// The IP packet in an unencrypted IEEE 802.11 data frame (§9.2.3).
fn wifi(frame: &[u8]) -> Result<&[u8], NotASegment> {
    let [control, flags] = *frame.first_chunk().ok_or(NotASegment::CutShort)?;
    let (kind, subtype) = (control >> 2 & 3, control >> 4);
    // Data frames count, unless the third bit of the subtype says that they carry no data.
    if kind != 2 || subtype & 4 != 0 || flags & 0x40 != 0 {
        return Err(NotASegment::NotIp);
    }
    let four_addresses = flags & 3 == 3;
    let with_qos = subtype & 8 != 0;
    // In a QoS frame, the order flag announces the HT control field.
    let with_ht = with_qos && flags & 0x80 != 0;
    let header = 24
        + if four_addresses { 6 } else { 0 }
        + if with_qos { 2 } else { 0 }
        + if with_ht { 4 } else { 0 };
    let rest = behind(frame, header)?;
    // Some radios pad the header to a multiple of four bytes.
    match llc(rest) {
        Err(NotASegment::NotIp) if header % 4 == 2 => llc(behind(frame, header + 2)?),
        other => other,
    }
}

fn behind(bytes: &[u8], offset: usize) -> Result<&[u8], NotASegment> {
    bytes.get(offset..).ok_or(NotASegment::CutShort)
}

fn u16_at(bytes: &[u8], offset: usize) -> Result<u16, NotASegment> {
    let field = bytes.get(offset..).and_then(|rest| rest.first_chunk());
    field.map(|b| u16::from_be_bytes(*b)).ok_or(NotASegment::CutShort)
}
