//! The formats of captures, as streams of [`Record`]s.

mod bytes;
mod error;
mod pcap;
mod pcapng;
mod pieces;
mod snoop;

pub use error::CaptureError;
pub use pcap::{file_header, record_header};
pub use pieces::Pieces;

pub use crate::packet::Record;

use self::bytes::Order;
use self::error::Result;

/// The largest packet that any capturing program keeps (libpcap's MAXIMUM_SNAPLEN), in bytes.
const LARGEST_PACKET: usize = 262_144;

/// A buffer of this size always holds the next record: the largest packet, its block, and the options behind the packet.
pub const LARGEST_RECORD: usize = 2 * LARGEST_PACKET;

/// Decodes a capture that arrives in pieces of any size.
///
/// [`Decoder::next`] removes one record from the front of `input`. `None` means that it needs more bytes after those left in
/// `input`. After an error, no more records follow.
#[derive(Debug, Default)]
pub struct Decoder {
    format: Format,
    consumed: u64,
    /// Bytes still to be skipped.
    skip: u64,
    has_record: bool,
}

#[derive(Debug, Default)]
enum Format {
    #[default]
    Unknown,
    Pcap(pcap::PcapHeader),
    Pcapng(pcapng::Section),
    Snoop(snoop::SnoopHeader),
}

enum Item<'a> {
    /// A packet, and the length of its record.
    Record(Record<'a>, usize),
    /// This many bytes contain no packet; some of them may not have arrived yet.
    Other(u64),
    /// More bytes are needed.
    Incomplete,
}

impl Decoder {
    /// The next record, if `input` contains all of it.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Record<'a>>> {
        loop {
            let skipped = self.skip.min(input.len() as u64);
            self.skip -= skipped;
            self.advance(input, skipped as usize);
            if input.is_empty() {
                return Ok(None);
            }
            let item = match &mut self.format {
                Format::Unknown => match recognise(input)? {
                    Some(format) => {
                        self.format = format;
                        continue;
                    }
                    None => Item::Incomplete,
                },
                Format::Pcap(header) => header.next(input, self.consumed)?,
                Format::Pcapng(section) => section.next(input, self.consumed)?,
                Format::Snoop(header) => header.next(input, self.consumed)?,
            };
            match item {
                Item::Record(record, size) => {
                    self.has_record = true;
                    self.advance(input, size);
                    return Ok(Some(record));
                }
                Item::Other(size) => self.skip = size,
                Item::Incomplete => return Ok(None),
            }
        }
    }

    /// Checks that the capture ends between two records; `rest` is the unread input.
    pub fn end(&self, rest: &[u8]) -> Result<()> {
        match self.format {
            Format::Unknown if self.consumed == 0 && rest.is_empty() => Err(CaptureError::Empty),
            Format::Unknown => Err(CaptureError::NotACapture { found: "too few bytes" }),
            _ if rest.is_empty() && self.skip == 0 => Ok(()),
            _ if self.consumed == 0 => Err(CaptureError::HeaderCutOff),
            _ if !self.has_record => Err(CaptureError::NoPacket),
            _ => Err(CaptureError::CutOff { at: self.consumed }),
        }
    }

    fn advance(&mut self, input: &mut &[u8], size: usize) {
        *input = input.get(size..).unwrap_or_default();
        self.consumed += size as u64;
    }
}

/// The first bytes of a zstd frame (RFC 8878 §3.1.1).
pub const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The largest zstd window: the default limit of `zstd` itself (ZSTD_WINDOWLOG_LIMIT_DEFAULT, 2^27). A frame's header may
/// declare terabytes, and the decoder keeps that much output.
pub const MAX_ZSTD_WINDOW: u64 = 128 << 20;

/// Why a frame with a window of `bytes` is not decompressed, and what to do about it.
pub fn large_zstd_window(bytes: u64) -> String {
    format!(
        "its zstd window of {} MiB is larger than the {} MiB that are allowed; if you trust it, decompress it first: \
         unzstd --long=31",
        bytes >> 20,
        MAX_ZSTD_WINDOW >> 20
    )
}

/// Whether a file that begins with `head` is a capture.
pub fn is_capture(head: &[u8; 4]) -> bool {
    recognise(head).is_ok_and(|format| format.is_some())
}

/// Recognizes the format by its first four bytes, and leaves them for the reader of the format.
fn recognise(input: &[u8]) -> Result<Option<Format>> {
    let Some(magic) = input.first_chunk::<4>() else { return Ok(None) };
    if u32::from_be_bytes(*magic) == pcapng::SECTION_HEADER {
        return Ok(Some(Format::Pcapng(pcapng::Section::default())));
    }
    if u32::from_be_bytes(*magic) == snoop::MAGIC {
        return Ok(Some(Format::Snoop(snoop::SnoopHeader::default())));
    }
    for order in [Order::Little, Order::Big] {
        if let Some(header) = pcap::PcapHeader::recognise(order, order.u32(*magic)) {
            return Ok(Some(Format::Pcap(header)));
        }
    }
    Err(CaptureError::NotACapture {
        found: match *magic {
            [0x1f, 0x8b, ..] => "gzip (gunzip it first)",
            ZSTD_MAGIC => "Zstandard (unzstd it first)",
            [0xfd, b'7', b'z', b'X'] => "xz (unxz it first)",
            _ => "something else",
        },
    })
}
