use sweetspot_units::{Duration, Time};

use crate::event::Event;
use crate::packet::Packet;

/// A host's link to its router. It has room for all, so that when a packet will be at the router
/// is known when it is sent.
#[derive(Debug)]
pub(crate) struct Feed {
    /// When the link will have sent all it was given.
    free: Time,
    /// When the last packet will be at the router, and its place in [`Transit`].
    last: (Time, u32),
}

impl Default for Feed {
    fn default() -> Self {
        Feed { free: Time::ZERO, last: (Time::ZERO, NONE) }
    }
}

impl Feed {
    /// The host sends a packet at `at` that takes `wire_time` on its link and then `delay`: when
    /// it will be at the router.
    #[inline(always)]
    pub(crate) fn send(&mut self, at: Time, wire_time: Duration, delay: Duration) -> Time {
        self.free = self.free.max(at) + wire_time;
        self.free + delay
    }

    /// From now on packets take `delay` after the host's link: none overtakes those on the way.
    pub(crate) fn change_delay(&mut self, delay: Duration) {
        self.free = self.free.max(self.last.0 - delay);
    }
}

/// All packets that are on their way from hosts to routers. Places are used again soon, so that
/// what is on its way lies close together however many hosts there are; a feed is a chain.
#[derive(Debug)]
pub(crate) struct Transit {
    places: Vec<Place>,
    /// The first free one.
    free: u32,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    /// When its packet arrives; [`Time::MAX`]: it is free.
    due: Time,
    packet: Packet,
    /// The next of its feed, or the next free one.
    next: u32,
    /// Whose it is: the packed event that stands for the feed.
    feed: u32,
}

/// No place.
const NONE: u32 = u32::MAX;

/// A packet arrives.
pub(crate) struct Arrived {
    pub packet: Packet,
    /// The event that stands for its feed.
    pub feed: Event,
    /// When the next of the same feed does, and its place.
    pub next: Option<(Time, u32)>,
}

impl Default for Transit {
    fn default() -> Self {
        Transit { places: Vec::new(), free: NONE }
    }
}

impl Transit {
    /// Takes over a packet that `feed`, for which `whose` stands, will have at its router at
    /// `due`. Its place, if it is to be waited for: at time `now` no other of the feed is on its way.
    #[inline(always)]
    pub(crate) fn put(
        &mut self,
        now: Time,
        (feed, whose): (&mut Feed, Event),
        due: Time,
        packet: Packet,
    ) -> Option<u32> {
        let whose = whose.pack();
        let place = self.fill(Place { due, packet, next: NONE, feed: whose });
        let (before, last) = core::mem::replace(&mut feed.last, (due, place));
        // What was due before now has arrived; what is due just now may have.
        if before < now || (before == now && !self.holds(last, before, whose)) {
            return Some(place);
        }
        self.places[last as usize].next = place;
        None
    }

    #[inline(always)]
    fn fill(&mut self, content: Place) -> u32 {
        if self.free == NONE {
            self.extend();
        }
        let place = self.free;
        self.free = self.places[place as usize].next;
        self.places[place as usize] = content;
        place
    }

    /// One more place, which is free.
    #[cold]
    fn extend(&mut self) {
        self.free = self.places.len() as u32;
        let packet = Packet::default();
        self.places.push(Place { due: Time::MAX, packet, next: NONE, feed: 0 });
    }

    #[cold]
    fn holds(&self, place: u32, due: Time, feed: u32) -> bool {
        self.places.get(place as usize).is_some_and(|held| held.due == due && held.feed == feed)
    }

    /// The packet in this place, the first of its feed, arrives.
    #[inline(always)]
    pub(crate) fn take(&mut self, place: u32) -> Arrived {
        let held = &mut self.places[place as usize];
        let Place { packet, next, feed, .. } = *held;
        (held.due, held.next) = (Time::MAX, self.free);
        self.free = place;
        let next = self.places.get(next as usize).map(|behind| (behind.due, next));
        Arrived { packet, feed: Event::unpack(feed), next }
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
