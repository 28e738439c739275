use core::hint::black_box;

use sweetspot_units::{Duration, Time};

use crate::event::Event;
use crate::packet::Packet;

/// A host's link to its router. It has room for all, so that when a packet will be at the router
/// is known when it is sent.
#[derive(Debug)]
pub(crate) struct Uplink {
    /// When the link will have sent all it was given.
    free: Time,
    /// When the last packet will be at the router, and its place in [`Transit`].
    last: (Time, u32),
}

impl Default for Uplink {
    fn default() -> Self {
        Uplink { free: Time::ZERO, last: (Time::ZERO, NONE) }
    }
}

impl Uplink {
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

/// All packets that are on their way from hosts to routers. Those of an uplink lie side by side, a few
/// to a block, and blocks are chained: what a host sent in a burst is not scattered among what others
/// sent in between. Blocks are used again soon.
#[derive(Debug)]
pub(crate) struct Transit {
    blocks: Vec<Block>,
    /// The first free one.
    free: u32,
}

/// Packets of one uplink in order: those that have arrived, those on their way, room.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
struct Block {
    held: [Held; BLOCK],
    /// Whose they are: the packed event that stands for the uplink.
    uplink: u32,
    /// The next one of the uplink, or the next free one.
    next: u32,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    /// When its packet arrives; [`Time::MAX`]: it has, or there is none, as in all of a free block.
    due: Time,
    packet: Packet,
}

/// Packets of a block: the window of a small flow, on seven lines; were their number even, the first
/// packets of all blocks would compete for a few sets of the cache. A place is the number of the
/// block and, in the last bits, that of the packet in it.
const BLOCK: usize = 11;
const SLOT: u32 = 4;

/// No block, no place.
const NONE: u32 = u32::MAX;

/// A packet arrives.
pub(crate) struct Arrived {
    pub packet: Packet,
    /// The event that stands for its uplink.
    pub uplink: Event,
    /// When the next of the same uplink does, and its place.
    pub next: Option<(Time, u32)>,
}

impl Default for Transit {
    fn default() -> Self {
        Transit { blocks: Vec::new(), free: NONE }
    }
}

impl Transit {
    /// Takes over a packet that `uplink`, for which `whose` stands, will have at its router at
    /// `due`. Its place, if it is to be waited for: at time `now` no other of the uplink is on its way.
    #[inline(always)]
    pub(crate) fn put(
        &mut self,
        now: Time,
        (uplink, whose): (&mut Uplink, Event),
        due: Time,
        packet: Packet,
    ) -> Option<u32> {
        let whose = whose.pack();
        let (before, last) = uplink.last;
        // What was due before now has arrived; what is due just now may have.
        let follows = before > now || (before == now && self.holds(last, before, whose));
        let place = if !follows {
            self.take_free(whose) << SLOT
        } else if slot(last) + 1 < BLOCK {
            last + 1
        } else {
            self.go_on(last, whose)
        };
        self.blocks[block_of(place)].held[slot(place)] = Held { due, packet };
        uplink.last = (due, place);
        (!follows).then_some(place)
    }

    /// A block for `uplink`.
    #[inline(always)]
    fn take_free(&mut self, uplink: u32) -> u32 {
        if self.free == NONE {
            self.extend();
        }
        let block = self.free;
        let taken = &mut self.blocks[block as usize];
        self.free = taken.next;
        (taken.uplink, taken.next) = (uplink, NONE);
        block
    }

    /// The first place of a block behind the one that `last` ends.
    #[cold]
    #[inline(never)]
    fn go_on(&mut self, last: u32, uplink: u32) -> u32 {
        let block = self.take_free(uplink);
        self.blocks[block_of(last)].next = block;
        block << SLOT
    }

    /// One more block, which is free.
    #[cold]
    fn extend(&mut self) {
        self.free = self.blocks.len() as u32;
        let held = [Held { due: Time::MAX, packet: Packet::default() }; BLOCK];
        self.blocks.push(Block { held, uplink: 0, next: NONE });
    }

    #[cold]
    fn holds(&self, place: u32, due: Time, uplink: u32) -> bool {
        self.blocks
            .get(block_of(place))
            .is_some_and(|block| block.uplink == uplink && block.held[slot(place)].due == due)
    }

    /// Reads the whole block of a packet that arrives soon from memory, which answers several reads in
    /// the time of one.
    #[inline]
    pub(crate) fn read_ahead(&self, place: u32) {
        // Packets of 40 bytes on lines of 64: one that begins on each.
        let held = &self.blocks[block_of(place)].held;
        black_box([0, 2, 4, 5, 7, 8, 10].map(|packet| held[packet].due));
    }

    /// The packet in this place, the first of its uplink, arrives.
    #[inline(always)]
    pub(crate) fn take(&mut self, place: u32) -> Arrived {
        let block = &mut self.blocks[block_of(place)];
        let uplink = Event::unpack(block.uplink);
        let held = &mut block.held[slot(place)];
        held.due = Time::MAX;
        let packet = held.packet;
        if let Some(behind) = block.held.get(slot(place) + 1)
            && behind.due < Time::MAX
        {
            return Arrived { packet, uplink, next: Some((behind.due, place + 1)) };
        }
        let next = core::mem::replace(&mut block.next, self.free);
        self.free = place >> SLOT;
        let next = self.blocks.get(next as usize).map(|behind| (behind.held[0].due, next << SLOT));
        Arrived { packet, uplink, next }
    }
}

#[inline(always)]
fn block_of(place: u32) -> usize {
    (place >> SLOT) as usize
}

#[inline(always)]
fn slot(place: u32) -> usize {
    (place & ((1 << SLOT) - 1)) as usize
}

/// A host's link in the other direction: what its router sends arrives one after the other.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Downlink {
    free: Time,
}

impl Downlink {
    /// When a packet that leaves the router at `now` is at the host.
    #[inline]
    pub(crate) fn arrival(&mut self, now: Time, wire_time: Duration, delay: Duration) -> Time {
        self.free = self.free.max(now) + wire_time;
        self.free + delay
    }
}
