//! The snoop format of Solaris (RFC 1761).

use sweetspot_units::Time;

use super::bytes::Order;
use super::error::Result;
use super::{CaptureError, Item, LARGEST_PACKET, Record};
use crate::packet::Link;

/// The first four bytes of a file; four zero bytes and the version follow.
pub const MAGIC: u32 = 0x736e_6f6f;
const FILE_HEADER: u64 = 16;
const RECORD_HEADER: usize = 24;
const ORDER: Order = Order::Big;

/// Fields of the file header that apply to every record.
#[derive(Debug, Default)]
pub struct SnoopHeader {
    /// The link layer; `None` before the file header was read.
    link: Option<Link>,
}

impl SnoopHeader {
    pub fn next<'a>(&mut self, input: &'a [u8], at: u64) -> Result<Item<'a>> {
        match self.link {
            Some(link) => record(link, input, at),
            None => self.header(input),
        }
    }

    fn header<'a>(&mut self, input: &'a [u8]) -> Result<Item<'a>> {
        let field = |i: usize| ORDER.u32_at(input, 4 * i);
        let (Some(rest), Some(version), Some(network)) = (field(1), field(2), field(3)) else {
            return Ok(Item::Incomplete);
        };
        if rest != u32::from_be_bytes(*b"p\0\0\0") {
            return Err(CaptureError::NotACapture { found: "something else" });
        }
        if version != 2 {
            let (major, minor) = ((version >> 16) as u16, version as u16);
            return Err(CaptureError::Version { format: "snoop", major, minor });
        }
        // The numbers are DLPI's, which differ from pcap's.
        self.link = Some(match network {
            0 | 4 => Link::Ethernet,
            2 => Link::TokenRing,
            8 => Link::Fddi,
            other => Link::Other(other),
        });
        Ok(Item::Other(FILE_HEADER))
    }
}

fn record(link: Link, input: &[u8], at: u64) -> Result<Item<'_>> {
    let field = |i: usize| ORDER.u32_at(input, 4 * i);
    let (Some(length), Some(kept), Some(size)) = (field(0), field(1), field(2)) else {
        return Ok(Item::Incomplete);
    };
    let (Some(seconds), Some(micros)) = (field(4), field(5)) else { return Ok(Item::Incomplete) };
    let (length, kept, size) = (length as usize, kept as usize, size as usize);
    if kept > LARGEST_PACKET || size < RECORD_HEADER + kept || size > 2 * LARGEST_PACKET {
        let what = "a packet longer than its record, or than any that can be captured";
        return Err(CaptureError::Corrupt { at, what });
    }
    let Some(whole) = input.get(RECORD_HEADER..size) else { return Ok(Item::Incomplete) };
    let nanos = u64::from(seconds) * 1_000_000_000 + u64::from(micros) * 1000;
    let bytes = &whole[..kept];
    let time = Time::from_nanos(nanos);
    Ok(Item::Record(Record { time, link, bytes, length: length.max(kept) }, size))
}
