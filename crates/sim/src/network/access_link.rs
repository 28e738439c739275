use sweetspot_units::{Duration, Time};

use super::Place;
use crate::event::{self, kind};

/// A link that carries packets to a router, packed as [`event::pack`] does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccessLink(u32);

impl AccessLink {
    /// That of a flow's source.
    #[inline]
    pub(crate) fn of_source(flow: u32) -> AccessLink {
        AccessLink(event::pack(kind::SOURCE_UPLINK, flow))
    }

    /// That of a measured transfer's sink.
    #[inline]
    pub(crate) fn of_sink(flow: u32) -> AccessLink {
        AccessLink(event::pack(kind::SINK_UPLINK, flow))
    }

    /// The input link with this index.
    #[inline]
    pub(crate) fn input(index: u32) -> AccessLink {
        AccessLink(event::pack(kind::INPUT_LINK, index))
    }

    /// The flow with its source on this link.
    #[inline]
    pub(crate) fn source(self) -> Option<u32> {
        let (kind, flow) = event::unpack(self.0);
        (kind == kind::SOURCE_UPLINK).then_some(flow)
    }

    /// Its place among simultaneous events.
    #[inline]
    pub(crate) fn packed(self) -> u32 {
        self.0
    }
}

/// A host's link to its router. It has room for every packet, so that the time at which a packet
/// reaches the router is known when it is sent.
#[derive(Debug, Default)]
pub(crate) struct Uplink {
    /// When the link will have sent all it was given.
    free: Time,
    /// When the packet sent last reaches the router, and its place in [`super::Transit`].
    pub(super) last: (Time, Place),
}

impl Uplink {
    /// Sends a packet at `at` that takes `wire_time` on the link and `delay` behind it. Gives back
    /// the time at which it reaches the router.
    #[inline(always)]
    pub(crate) fn send(&mut self, at: Time, wire_time: Duration, delay: Duration) -> Time {
        self.free = self.free.max(at) + wire_time;
        self.free + delay
    }

    /// Packets take `delay` behind the link from now on, and overtake none that are on their way.
    pub(crate) fn change_delay(&mut self, delay: Duration) {
        self.free = self.free.max(self.last.0 - delay);
    }
}

/// A router's link to a host, with room for every packet.
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
