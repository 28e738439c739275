use std::collections::VecDeque;

use sweetspot_units::{Duration, Time};

use crate::packet::Packet;

/// What one host has sent and its router has not received yet. A host's own link has room for
/// all, so that when a packet will be at the router is known when it is sent.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    /// When the host's link will have sent all it was given.
    free: Time,
    on_the_way: VecDeque<(Time, Packet)>,
}

impl Feed {
    /// The host sends a packet that takes `wire_time` on its link and then `delay`. Gives back
    /// when it will be at the router if no other is on the way: the event to ask for.
    #[inline]
    pub(crate) fn send(
        &mut self,
        now: Time,
        packet: Packet,
        wire_time: Duration,
        delay: Duration,
    ) -> Option<Time> {
        self.free = self.free.max(now) + wire_time;
        let due = self.free + delay;
        let alone = self.on_the_way.is_empty();
        self.on_the_way.push_back((due, packet));
        alone.then_some(due)
    }

    /// From now on packets take `delay` after the host's link: none overtakes those on the way.
    pub(crate) fn change_delay(&mut self, delay: Duration) {
        if let Some((last, _)) = self.on_the_way.back() {
            self.free = self.free.max(*last - delay);
        }
    }

    /// The first packet arrives at the router; with it comes when the next one will.
    #[inline]
    pub(crate) fn arrive(&mut self) -> Option<(Packet, Option<Time>)> {
        let (_, packet) = self.on_the_way.pop_front()?;
        Some((packet, self.on_the_way.front().map(|(due, _)| *due)))
    }
}

/// A host's link in the other direction: what its router sends arrives one after the other.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Inlet {
    free: Time,
}

impl Inlet {
    /// When a packet that leaves the router at `now` is at the host.
    #[inline]
    pub(crate) fn arrival(&mut self, now: Time, wire_time: Duration, delay: Duration) -> Time {
        self.free = self.free.max(now) + wire_time;
        self.free + delay
    }
}
