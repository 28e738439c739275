//! Laws of the queue disciplines.

mod blue;
mod codel;
mod every_discipline;
mod fq_codel;
mod pie;
mod red;

use sweetspot_path::Packet;
use sweetspot_units::{Bytes, Duration, Time};

/// A packet with a flow and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Numbered {
    flow: u64,
    number: u64,
    size: u64,
    ecn_capable: bool,
    marked: bool,
}

impl Packet for Numbered {
    fn wire_size(&self) -> Bytes {
        Bytes::new(self.size)
    }
    fn flow(&self) -> u64 {
        self.flow
    }
    fn mark_ecn(&mut self) -> bool {
        self.marked = self.ecn_capable;
        self.marked
    }
}

/// Packet `number` of flow 0, 1000 bytes, not ECN-capable.
fn packet(number: u64) -> Numbered {
    Numbered { flow: 0, number, size: 1000, ecn_capable: false, marked: false }
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}
