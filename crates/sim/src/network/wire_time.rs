use sweetspot_units::{Duration, Rate};

use super::packet::BARE_SEGMENT;

/// How long packets take on the hosts' links, which all have one rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WireTimes {
    rate: Rate,
    /// The size of a full packet and its time, computed already.
    full: (u16, Duration),
    bare: Duration,
}

impl WireTimes {
    /// On links of `rate`, where most packets have `full` bytes or none of payload.
    pub(crate) fn new(rate: Rate, full: u16) -> WireTimes {
        WireTimes { rate, full: (full, at(rate, full)), bare: at(rate, BARE_SEGMENT) }
    }

    /// The time of a packet of `size` bytes.
    #[inline]
    pub(crate) fn of(&self, size: u16) -> Duration {
        if size == self.full.0 {
            self.full.1
        } else if size == BARE_SEGMENT {
            self.bare
        } else {
            at(self.rate, size)
        }
    }
}

/// How long a packet of `size` bytes takes on a link of `rate`.
pub(crate) fn at(rate: Rate, size: u16) -> Duration {
    Duration::from_nanos(u64::from(size) * 8_000_000_000 / rate.bits_per_second())
}
