use sweetspot_units::{Duration, Rate};

/// How long packets take on the hosts' links, which all have one rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WireTimes {
    rate: Rate,
    /// The size of a full packet and its time, computed already.
    full: (u16, Duration),
    /// The same of an ACK.
    bare: (u16, Duration),
}

impl WireTimes {
    /// On links of `rate`, where most packets have `full` bytes or are ACKs of `bare`.
    pub(crate) fn new(rate: Rate, full: u16, bare: u16) -> WireTimes {
        WireTimes { rate, full: (full, at(rate, full)), bare: (bare, at(rate, bare)) }
    }

    /// The time of a packet of `size` bytes.
    #[inline]
    pub(crate) fn of(&self, size: u16) -> Duration {
        if size == self.full.0 {
            self.full.1
        } else if size == self.bare.0 {
            self.bare.1
        } else {
            at(self.rate, size)
        }
    }
}

/// How long a packet of `size` bytes takes on a link of `rate`.
pub(crate) fn at(rate: Rate, size: u16) -> Duration {
    Duration::from_nanos(u64::from(size) * 8_000_000_000 / rate.bits_per_second())
}
