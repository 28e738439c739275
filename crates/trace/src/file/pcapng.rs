//! The pcapng block format (draft-ietf-opsawg-pcapng).

use sweetspot_units::Time;

use super::bytes::Order;
use super::error::Result;
use super::{CaptureError, Item, LARGEST_PACKET, LARGEST_RECORD, Record};
use crate::packet::Link;

/// The type of a section header block; it is the same in both byte orders.
pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// The bytes of a block besides its body: the type, and the length before and after the body.
const BLOCK_OVERHEAD: usize = 12;
/// More interfaces than any machine has; a hostile file could declare billions.
const MAX_INTERFACES: usize = 4096;

/// The properties that the blocks so far define for the following packets.
#[derive(Debug, Default)]
pub struct Section {
    order: Order,
    interfaces: Vec<Interface>,
    /// The time of the last packet that had one; simple packet blocks have none.
    time: Time,
}

#[derive(Debug, Clone, Copy)]
struct Interface {
    link: Link,
    snap: usize,
    resolution: Resolution,
    /// Seconds to add to each timestamp.
    offset: i64,
}

/// The length of a tick of an interface's clock.
#[derive(Debug, Clone, Copy)]
enum Resolution {
    /// 10 to the power of minus this, in seconds.
    Decimal(u32),
    /// 2 to the power of minus this, in seconds.
    Binary(u32),
}

impl Section {
    pub fn next<'a>(&mut self, input: &'a [u8], at: u64) -> Result<Item<'a>> {
        let corrupt = |what| Err(CaptureError::Corrupt { at, what });
        let Some(kind) = self.order.u32_at(input, 0) else { return Ok(Item::Incomplete) };
        if kind == SECTION_HEADER {
            let Some(magic) = input.get(8..).and_then(|b| b.first_chunk::<4>()) else {
                return Ok(Item::Incomplete);
            };
            let orders = [Order::Little, Order::Big];
            let Some(order) = orders.into_iter().find(|o| o.u32(*magic) == BYTE_ORDER_MAGIC) else {
                return corrupt("a section of unknown byte order");
            };
            *self = Section { order, ..Section::default() };
        }
        let Some(length) = self.order.u32_at(input, 4) else { return Ok(Item::Incomplete) };
        if (length as usize) < BLOCK_OVERHEAD || length % 4 != 0 {
            return corrupt("a block whose length cannot be");
        }
        if !matches!(
            kind,
            SECTION_HEADER | INTERFACE | OBSOLETE_PACKET | SIMPLE_PACKET | ENHANCED_PACKET
        ) {
            return Ok(Item::Other(length.into()));
        }
        let length = length as usize;
        if length > LARGEST_RECORD {
            return corrupt("a block larger than any packet makes it");
        }
        let Some(block) = input.get(..length) else { return Ok(Item::Incomplete) };
        if self.order.u32_at(block, length - 4) != Some(length as u32) {
            return corrupt("a block whose two lengths differ");
        }
        self.block(kind, &block[8..length - 4], at, length)
    }

    fn block<'a>(&mut self, kind: u32, body: &'a [u8], at: u64, length: usize) -> Result<Item<'a>> {
        let short = CaptureError::Corrupt { at, what: "a block too short for what it holds" };
        let record = match kind {
            SECTION_HEADER => {
                let (Some(major), Some(minor)) =
                    (self.order.u16_at(body, 4), self.order.u16_at(body, 6))
                else {
                    return Err(short);
                };
                if major != 1 {
                    return Err(CaptureError::Version { format: "pcapng", major, minor });
                }
                return Ok(Item::Other(length as u64));
            }
            INTERFACE => {
                if self.interfaces.len() == MAX_INTERFACES {
                    return Err(CaptureError::Corrupt { at, what: "too many interfaces" });
                }
                self.interfaces.push(Interface::read(self.order, body).ok_or(short)?);
                return Ok(Item::Other(length as u64));
            }
            SIMPLE_PACKET => self.simple(body),
            _ => self.timed(kind, body),
        };
        Ok(Item::Record(record.ok_or(short)?, length))
    }

    /// A packet from an enhanced packet block, or from the obsolete packet block.
    fn timed<'a>(&mut self, kind: u32, body: &'a [u8]) -> Option<Record<'a>> {
        let index = match kind {
            OBSOLETE_PACKET => self.order.u16_at(body, 0)?.into(),
            _ => self.order.u32_at(body, 0)?,
        };
        let field = |i: usize| self.order.u32_at(body, 4 * i);
        let interface = *self.interfaces.get(index as usize)?;
        let ticks = u64::from(field(1)?) << 32 | u64::from(field(2)?);
        let (kept, length) = (field(3)? as usize, field(4)? as usize);
        if kept > LARGEST_PACKET {
            return None;
        }
        let bytes = body.get(20..)?.get(..kept)?;
        self.time = interface.time(ticks);
        Some(Record { time: self.time, link: interface.link, bytes, length: length.max(kept) })
    }

    fn simple<'a>(&self, body: &'a [u8]) -> Option<Record<'a>> {
        let interface = self.interfaces.first()?;
        let length = self.order.u32_at(body, 0)? as usize;
        let kept = length.min(interface.snap);
        let bytes = body.get(4..)?.get(..kept)?;
        Some(Record { time: self.time, link: interface.link, bytes, length })
    }
}

impl Interface {
    fn read(order: Order, body: &[u8]) -> Option<Interface> {
        let mut interface = Interface {
            link: Link::from_number(order.u16_at(body, 0)?.into()),
            // A snap length of zero means that packets are kept whole.
            snap: match order.u32_at(body, 4)? as usize {
                0 => LARGEST_PACKET,
                snap => snap.min(LARGEST_PACKET),
            },
            resolution: Resolution::Decimal(6),
            offset: 0,
        };
        let mut options = body.get(8..).unwrap_or_default();
        while let (Some(code), Some(size)) = (order.u16_at(options, 0), order.u16_at(options, 2)) {
            let size = usize::from(size);
            let Some(value) = options.get(4..).and_then(|rest| rest.get(..size)) else { break };
            match (code, value) {
                (0, _) => break,
                // if_tsresol
                (9, [r, ..]) if r & 0x80 == 0 => {
                    interface.resolution = Resolution::Decimal((*r).into())
                }
                (9, [r, ..]) => interface.resolution = Resolution::Binary((r & 0x7f).into()),
                // if_tsoffset
                (14, _) => {
                    if let (Some(a), Some(b)) = (order.u32_at(value, 0), order.u32_at(value, 4)) {
                        let (high, low) = if order == Order::Little { (b, a) } else { (a, b) };
                        let offset = u64::from(high) << 32 | u64::from(low);
                        interface.offset = offset.cast_signed();
                    }
                }
                _ => {}
            }
            options = options.get(4 + size.next_multiple_of(4)..).unwrap_or_default();
        }
        Some(interface)
    }

    /// The time of a timestamp on this interface. Impossible timestamps give a wrong time instead of a panic.
    fn time(&self, ticks: u64) -> Time {
        let ticks = u128::from(ticks);
        let nanos = match self.resolution {
            Resolution::Decimal(digits @ 0..=9) => ticks.saturating_mul(10_u128.pow(9 - digits)),
            Resolution::Decimal(digits) => {
                ticks / 10_u128.checked_pow(digits - 9).unwrap_or(u128::MAX)
            }
            Resolution::Binary(bits) => (ticks * 1_000_000_000).checked_shr(bits).unwrap_or(0),
        };
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        Time::from_nanos(nanos.saturating_add_signed(self.offset.saturating_mul(1_000_000_000)))
    }
}
