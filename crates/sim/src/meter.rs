use sweetspot_units::Time;

/// What a link saw since the start, in a form whose differences give an interval's averages.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QueueMeter {
    totals: QueueTotals,
    at: Time,
    waiting: u64,
    waiting_bytes: u64,
    /// The most that waited since the meter was last asked.
    pub most: u64,
}

/// Running totals.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QueueTotals {
    pub arrivals: u64,
    pub drops: u64,
    pub departures: u64,
    pub departed_bytes: u64,
    /// Packets waiting times nanoseconds.
    pub packet_time: u128,
    /// Bytes waiting times nanoseconds.
    pub byte_time: u128,
}

impl QueueMeter {
    pub(crate) fn count_arrival(&mut self) {
        self.totals.arrivals += 1;
    }

    pub(crate) fn count_drop(&mut self) {
        self.totals.drops += 1;
    }

    pub(crate) fn count_departure(&mut self, size: u16) {
        self.totals.departures += 1;
        self.totals.departed_bytes += u64::from(size);
    }

    /// From `now` on so much waits.
    #[inline]
    pub(crate) fn observe(&mut self, now: Time, packets: u64, bytes: u64) {
        self.integrate(now);
        self.waiting = packets;
        self.waiting_bytes = bytes;
        self.most = self.most.max(packets);
    }

    #[inline]
    fn integrate(&mut self, now: Time) {
        let elapsed = now.since(self.at).as_nanos();
        self.totals.packet_time += u128::from(self.waiting * elapsed);
        self.totals.byte_time += u128::from(self.waiting_bytes * elapsed);
        self.at = now;
    }

    /// The totals up to `now`.
    pub(crate) fn totals(&mut self, now: Time) -> QueueTotals {
        self.integrate(now);
        self.totals
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.totals.drops
    }

    pub(crate) fn departed(&self) -> u64 {
        self.totals.departures
    }
}
