use sweetspot_units::{Duration, Time};

use crate::event::Place;

/// A host's link to its router. It has an unlimited buffer, so the time at which a packet reaches
/// the router is known when it is sent.
#[derive(Debug, Default)]
pub(crate) struct Uplink {
    /// The time at which the link will have sent everything.
    free: Time,
    /// Arrival time at the router of the last packet sent, and the packet's position in
    /// [`super::Transit`].
    pub(super) last: (Time, Place),
}

impl Uplink {
    /// Sends a packet at `at` that takes `wire_time` on the link and then `delay`. Returns the time
    /// at which it reaches the router.
    #[inline(always)]
    pub(crate) fn send(&mut self, at: Time, wire_time: Duration, delay: Duration) -> Time {
        self.free = self.free.max(at) + wire_time;
        self.free + delay
    }

    /// Changes the delay after the link. Later packets do not overtake packets in flight.
    pub(crate) fn change_delay(&mut self, delay: Duration) {
        self.free = self.free.max(self.last.0 - delay);
    }
}

/// A router's link to a host, with an unlimited buffer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Downlink {
    free: Time,
}

impl Downlink {
    /// The time at which a packet that leaves the router at `now` reaches the host.
    #[inline]
    pub(crate) fn arrival(&mut self, now: Time, wire_time: Duration, delay: Duration) -> Time {
        self.free = self.free.max(now) + wire_time;
        self.free + delay
    }
}
