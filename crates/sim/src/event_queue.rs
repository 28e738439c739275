use sweetspot_scenario::Ties;
use sweetspot_units::Time;

use crate::access_link::AccessLink;
use crate::event::{self, Event, Place};
use crate::random;
use crate::scheduler::{Key, Scheduler};

/// The clock and the events to come, in the order in which they happen.
#[derive(Debug)]
pub(crate) struct EventQueue<S> {
    now: Time,
    scheduler: S,
    /// Events that have happened, observations not among them.
    happened: u64,
    order: TieOrder,
}

#[derive(Debug, Clone, Copy)]
enum TieOrder {
    /// At random. The order depends on the seed, the time and the event alone, not on how many
    /// numbers were drawn before, so that how the work is cut into events decides nothing.
    Seeded(u64),
    /// In scheduling order; this many have been scheduled.
    Declared(u32),
}

impl<S: Scheduler> EventQueue<S> {
    pub(crate) fn new(scheduler: S, ties: Ties, seed: u64) -> EventQueue<S> {
        let order = match ties {
            Ties::Seeded => TieOrder::Seeded(random::stream(seed, 0, 0, 0).bits()),
            Ties::Declared => TieOrder::Declared(0),
        };
        EventQueue { now: Time::ZERO, scheduler, happened: 0, order }
    }

    #[inline]
    pub(crate) fn schedule(&mut self, at: Time, event: Event) {
        debug_assert!(at >= self.now, "{event:?} is scheduled in the past");
        let declared = self.declare();
        let packed = event.pack();
        self.scheduler.push(Key::new(at, self.tie_break(at, declared, packed), packed));
    }

    /// Schedules the arrival of the packet in a place of the transit, the first one of `link`. It
    /// has the link's place among simultaneous events.
    #[inline(always)]
    pub(crate) fn schedule_arrival(&mut self, due: Time, place: Place, link: AccessLink) {
        let declared = self.declare();
        let tie_break = self.tie_break(due, declared, link.packed());
        self.scheduler.push(Key::new(due, tie_break, Event::Arrival(place).pack()));
    }

    /// The key of the next event, [`Key::NEVER`] where there is none.
    #[inline]
    pub(crate) fn peek(&mut self) -> Key {
        self.scheduler.peek()
    }

    /// The next event, which [`EventQueue::peek`] has shown, happens.
    #[inline]
    pub(crate) fn pop(&mut self, next: Key) -> Event {
        self.happen(next.at());
        self.scheduler.pop();
        Event::unpack(next.event())
    }

    /// An event that is not in the queue happens at `at`.
    #[inline]
    pub(crate) fn happen(&mut self, at: Time) {
        debug_assert!(at >= self.now, "time runs backwards");
        self.now = at;
        self.happened += 1;
    }

    /// The last event was an observation: observations do not count.
    pub(crate) fn discount(&mut self) {
        self.happened -= 1;
    }

    /// An event that happens soon, as [`Scheduler::poll_near`] has it.
    #[inline]
    pub(crate) fn poll_near(&mut self) -> Option<Event> {
        self.scheduler.poll_near().map(Event::unpack)
    }
}

impl<S> EventQueue<S> {
    #[inline(always)]
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    pub(crate) fn happened(&self) -> u64 {
        self.happened
    }

    /// The number of one more event that is scheduled, where that decides.
    #[inline]
    pub(crate) fn declare(&mut self) -> u32 {
        match &mut self.order {
            TieOrder::Seeded(_) => 0,
            TieOrder::Declared(count) => {
                *count = count.wrapping_add(1);
                *count
            }
        }
    }

    /// The key of an event of hop `index` that was `declared` as that number.
    #[inline]
    pub(crate) fn hop_key(&self, at: Time, declared: u32, index: u32) -> Key {
        let packed = event::pack(event::kind::HOP, index);
        Key::new(at, self.tie_break(at, declared, packed), packed)
    }

    /// The rank of a `packed` event among events of the same time.
    #[inline]
    fn tie_break(&self, at: Time, declared: u32, packed: u32) -> u32 {
        match self.order {
            TieOrder::Seeded(seed) => {
                // Multipliers of SplitMix64's finalizer (Steele, Lea, Flood 2014).
                let mixed = (at.as_nanos() ^ seed).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = mixed ^ (mixed >> 32) ^ u64::from(packed);
                (mixed.wrapping_mul(0x94d0_49bb_1331_11eb) >> 32) as u32
            }
            TieOrder::Declared(_) => declared,
        }
    }
}
