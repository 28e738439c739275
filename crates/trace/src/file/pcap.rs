//! The classic pcap format (draft-ietf-opsawg-pcap).

use sweetspot_units::Time;

use super::bytes::Order;
use super::error::Result;
use super::{CaptureError, Item, LARGEST_PACKET, Record};
use crate::packet::Link;

/// A file header for Ethernet frames: at most `snap` bytes of each are kept, and times are in nanoseconds.
pub fn file_header(snap: u32) -> [u8; 24] {
    let mut header = [0; 24];
    let fields = [(0, 0xa1b2_3c4d), (4, 2 | 4 << 16), (16, snap), (20, 1)];
    for (at, value) in fields {
        header[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
    }
    header
}

/// A record header for a packet captured at `time`: `kept` of its `length` bytes follow.
pub fn record_header(time: Time, kept: usize, length: usize) -> [u8; 16] {
    let nanos = time.as_nanos();
    let (seconds, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let mut header = [0; 16];
    let fields = [seconds as u32, fraction as u32, kept as u32, length as u32];
    for (at, value) in header.chunks_exact_mut(4).zip(fields) {
        at.copy_from_slice(&value.to_le_bytes());
    }
    header
}

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// Fields of the file header that apply to every record.
#[derive(Debug)]
pub struct PcapHeader {
    order: Order,
    nanoseconds: bool,
    /// Bytes that Kuznetsov's variant of the format adds to each record header.
    extra: usize,
    /// The order of the two lengths in a record.
    lengths: Lengths,
    /// The link layer; `None` before the file header was read.
    link: Option<Link>,
}

/// The order of the two lengths in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lengths {
    /// The captured length, then the original one.
    KeptFirst,
    /// The original length, then the captured one, as before version 2.3.
    KeptLast,
    /// Either order, in version 2.3. The captured length is never the larger one.
    Unknown,
}

impl PcapHeader {
    /// A reader for a file that begins with `magic`, read in byte order `order`.
    pub fn recognise(order: Order, magic: u32) -> Option<PcapHeader> {
        let (nanoseconds, extra) = match magic {
            0xa1b2_c3d4 => (false, 0),
            0xa1b2_3c4d => (true, 0),
            0xa1b2_cd34 => (false, 8),
            _ => return None,
        };
        Some(PcapHeader { order, nanoseconds, extra, lengths: Lengths::KeptFirst, link: None })
    }

    pub fn next<'a>(&mut self, input: &'a [u8], at: u64) -> Result<Item<'a>> {
        match self.link {
            Some(link) => self.record(link, input, at),
            None => self.header(input),
        }
    }

    fn header<'a>(&mut self, input: &'a [u8]) -> Result<Item<'a>> {
        let order = self.order;
        let (Some(major), Some(minor), Some(network)) =
            (order.u16_at(input, 4), order.u16_at(input, 6), order.u32_at(input, 20))
        else {
            return Ok(Item::Incomplete);
        };
        if major != 2 {
            return Err(CaptureError::Version { format: "pcap", major, minor });
        }
        self.lengths = match minor {
            0..3 => Lengths::KeptLast,
            3 => Lengths::Unknown,
            _ => Lengths::KeptFirst,
        };
        // The upper bits give the length of the frame check sequence, if frames have one.
        self.link = Some(Link::from_number(network & 0xffff));
        Ok(Item::Other(FILE_HEADER as u64))
    }

    fn record<'a>(&self, link: Link, input: &'a [u8], at: u64) -> Result<Item<'a>> {
        let field = |i: usize| self.order.u32_at(input, 4 * i);
        let (Some(seconds), Some(fraction), Some(kept), Some(length)) =
            (field(0), field(1), field(2), field(3))
        else {
            return Ok(Item::Incomplete);
        };
        let (kept, length) = match self.lengths {
            Lengths::KeptFirst => (kept, length),
            Lengths::KeptLast => (length, kept),
            Lengths::Unknown => (kept.min(length), kept.max(length)),
        };
        let kept = kept as usize;
        if kept > LARGEST_PACKET {
            let what = "a packet longer than any that can be captured";
            return Err(CaptureError::Corrupt { at, what });
        }
        let start = RECORD_HEADER + self.extra;
        let Some(bytes) = input.get(start..start + kept) else { return Ok(Item::Incomplete) };
        let unit = if self.nanoseconds { 1 } else { 1000 };
        let nanos = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * unit;
        let length = (length as usize).max(kept);
        let record = Record { time: Time::from_nanos(nanos), link, bytes, length };
        Ok(Item::Record(record, start + kept))
    }
}
