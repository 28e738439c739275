use core::fmt;
use core::str::FromStr;

use crate::bytes;
use crate::{Bytes, UnitError};

/// An amount in bytes or in packets, such as a router's buffer. It keeps its unit, because the two behave differently:
/// a buffer counted in packets holds as many ACKs as data packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Volume {
    /// Counted in bytes on the wire.
    Bytes(Bytes),
    /// Counted in packets of any size.
    Packets(u64),
}

impl Volume {
    /// The amount in bytes, at `packet` bytes per packet.
    pub fn in_bytes(self, packet: Bytes) -> Bytes {
        match self {
            Volume::Bytes(b) => b,
            Volume::Packets(n) => packet * n,
        }
    }

    /// The amount in whole packets of `packet` bytes, rounded down.
    pub fn in_packets(self, packet: Bytes) -> u64 {
        match self {
            Volume::Bytes(b) => b.get() / packet.get().max(1),
            Volume::Packets(n) => n,
        }
    }
}

impl FromStr for Volume {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Volume, UnitError> {
        let wrong = |mut e: UnitError| {
            e.examples = "625pkt, 125kB, 64KiB";
            e
        };
        let (value, unit) = bytes::NOTATION.split(text).map_err(wrong)?;
        if unit != "pkt" {
            return text.parse().map(Volume::Bytes).map_err(wrong);
        }
        if value.fract() != 0.0 || value > 1e15 {
            return Err(wrong(bytes::NOTATION.error(text, "packets come whole")));
        }
        Ok(Volume::Packets(value as u64))
    }
}

impl fmt::Display for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Volume::Bytes(b) => b.fmt(f),
            Volume::Packets(n) => f.pad(&format!("{n} pkt")),
        }
    }
}
