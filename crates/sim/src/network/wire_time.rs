use sweetspot_units::{Duration, Rate};

/// Serialisation times of packets on the hosts' links, which all have the same rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WireTimes {
    rate: Rate,
    /// The size of a full packet, and its precomputed time.
    full: (u16, Duration),
    /// The size of an ACK, and its precomputed time.
    bare: (u16, Duration),
}

impl WireTimes {
    /// For links of `rate`. Most packets are data of `full` bytes or ACKs of `bare` bytes.
    pub(crate) fn new(rate: Rate, full: u16, bare: u16) -> WireTimes {
        WireTimes { rate, full: (full, at(rate, full)), bare: (bare, at(rate, bare)) }
    }

    /// The serialisation time of a packet of `size` bytes.
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

/// The serialisation time of a packet of `size` bytes on a link of `rate`.
pub(crate) fn at(rate: Rate, size: u16) -> Duration {
    Duration::from_nanos(u64::from(size) * 8_000_000_000 / rate.bits_per_second())
}
