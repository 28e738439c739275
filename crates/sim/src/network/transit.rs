use core::hint::black_box;

use sweetspot_units::{Deadline, Time};

use super::{Packet, Uplink};
use crate::access_link::AccessLink;
use crate::event::Place;
use crate::index::Index;

/// All packets in flight from hosts to routers.
///
/// A link's packets are stored next to each other, a few to a block, and its blocks are chained, so that a host's burst is not
/// scattered among other hosts' packets. Blocks are reused soon.
#[derive(Debug, Default)]
pub(crate) struct Transit {
    blocks: Vec<Block>,
    first_free: Option<Index>,
}

/// Packets of one link in order: arrived packets, packets in flight, free slots.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
struct Block {
    slots: [Slot; BLOCK_SLOTS],
    /// The link that uses the block, or used it last.
    link: AccessLink,
    /// The link's next block, or the next free one.
    next: Option<Index>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The packet's arrival time; never, if it has arrived or the slot is free.
    due: Deadline,
    packet: Packet,
}

/// Packets per block: the window of a small flow, on seven cache lines. With an even number of lines, the first packets of all
/// blocks would compete for a few sets of the cache.
const BLOCK_SLOTS: usize = 11;
const SLOT_BITS: u32 = 4;

pub(crate) struct Arrived {
    pub packet: Packet,
    pub link: AccessLink,
    /// Arrival time and position of the link's next packet.
    pub next: Option<(Time, Place)>,
}

impl Place {
    #[inline(always)]
    fn first_of(block: Index) -> Place {
        Place::new((block.get() as u32) << SLOT_BITS)
    }

    #[inline(always)]
    fn block(self) -> usize {
        (self.get() >> SLOT_BITS) as usize
    }

    /// The next position in the same block.
    #[inline(always)]
    fn next(self) -> Place {
        Place::new(self.get() + 1)
    }

    #[inline(always)]
    fn slot(self) -> usize {
        (self.get() & ((1 << SLOT_BITS) - 1)) as usize
    }
}

impl Transit {
    /// Stores a packet of `link` that reaches the router over `uplink` at `due`. Returns its position if its arrival must be
    /// scheduled, because no other packet of the link is in flight at `now`.
    #[inline(always)]
    pub(crate) fn put(
        &mut self,
        now: Time,
        (uplink, link): (&mut Uplink, AccessLink),
        due: Time,
        packet: Packet,
    ) -> Option<Place> {
        let (before, last) = uplink.last;
        // Packets due before `now` have arrived; packets due exactly at `now` may have.
        let follows = before > now || (before == now && self.holds(last, before, link));
        let place = if !follows {
            Place::first_of(self.take_free(link))
        } else if last.slot() + 1 < BLOCK_SLOTS {
            last.next()
        } else {
            self.extend_chain(last, link)
        };
        self.blocks[place.block()].slots[place.slot()] = Slot { due: due.into(), packet };
        uplink.last = (due, place);
        (!follows).then_some(place)
    }

    /// Takes a free block for `link`.
    #[inline(always)]
    fn take_free(&mut self, link: AccessLink) -> Index {
        let block = match self.first_free {
            Some(block) => block,
            None => self.add_block(link),
        };
        let allocated = &mut self.blocks[block.get()];
        self.first_free = allocated.next;
        (allocated.link, allocated.next) = (link, None);
        block
    }

    /// The first position of a new block after the one that `last` ends.
    #[cold]
    #[inline(never)]
    fn extend_chain(&mut self, last: Place, link: AccessLink) -> Place {
        let block = self.take_free(link);
        self.blocks[last.block()].next = Some(block);
        Place::first_of(block)
    }

    #[cold]
    fn add_block(&mut self, link: AccessLink) -> Index {
        let slots = [Slot { due: Deadline::NEVER, packet: Packet::default() }; BLOCK_SLOTS];
        self.blocks.push(Block { slots, link, next: None });
        Index::new(self.blocks.len() - 1)
    }

    /// Whether `place` holds a packet of `link` that is due at `due`.
    #[cold]
    fn holds(&self, place: Place, due: Time, link: AccessLink) -> bool {
        self.blocks.get(place.block()).is_some_and(|block| {
            block.link == link && block.slots[place.slot()].due.time() == Some(due)
        })
    }

    /// Prefetches the whole block of a packet that arrives soon; memory answers several reads in the time of one.
    #[inline]
    pub(crate) fn read_ahead(&self, place: Place) {
        // Slots have 40 bytes and lines 64: these slots begin on different lines.
        let slots = &self.blocks[place.block()].slots;
        black_box([0, 2, 4, 5, 7, 8, 10].map(|slot| slots[slot].due));
    }

    /// Removes the packet at `place`, the first of its link, which arrives.
    #[inline(always)]
    pub(crate) fn take(&mut self, place: Place) -> Arrived {
        let block = &mut self.blocks[place.block()];
        let link = block.link;
        let slot = &mut block.slots[place.slot()];
        slot.due = Deadline::NEVER;
        let packet = slot.packet;
        if let Some(behind) = block.slots.get(place.slot() + 1)
            && let Some(due) = behind.due.time()
        {
            return Arrived { packet, link, next: Some((due, place.next())) };
        }
        let behind = core::mem::replace(&mut block.next, self.first_free);
        self.first_free = Some(Index::new(place.block()));
        let next = behind.and_then(|block| {
            let due = self.blocks[block.get()].slots[0].due.time()?;
            Some((due, Place::first_of(block)))
        });
        Arrived { packet, link, next }
    }
}
