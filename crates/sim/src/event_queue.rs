use sweetspot_scenario::Ties;
use sweetspot_units::Time;

use crate::access_link::AccessLink;
use crate::event::{self, Event, Place};
use crate::random;
use crate::scheduler::{Key, Scheduler};

/// The clock and the pending events, in the order in which they happen.
#[derive(Debug)]
pub(crate) struct EventQueue<S> {
    now: Time,
    scheduler: S,
    /// Number of events that have happened, without observations.
    happened: u64,
    order: TieOrder,
}

#[derive(Debug, Clone, Copy)]
enum TieOrder {
    /// In pseudo-random order. The order depends only on the seed, the time and the event, not on
    /// how many numbers were drawn before. It thus does not depend on how the work is divided into
    /// events.
    Seeded(u64),
    /// In scheduling order; holds the number of events scheduled so far.
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

    /// Schedules the arrival of the packet at `place`, the first packet of `link`. It has the
    /// link's rank among simultaneous events.
    #[inline(always)]
    pub(crate) fn schedule_arrival(&mut self, due: Time, place: Place, link: AccessLink) {
        let declared = self.declare();
        let tie_break = self.tie_break(due, declared, link.packed());
        self.scheduler.push(Key::new(due, tie_break, Event::Arrival(place).pack()));
    }

    /// The key of the next event, [`Key::NEVER`] if there is none.
    #[inline]
    pub(crate) fn peek(&mut self) -> Key {
        self.scheduler.peek()
    }

    /// Takes the next event, returned by [`EventQueue::peek`], and advances the clock to it.
    #[inline]
    pub(crate) fn pop(&mut self, next: Key) -> Event {
        self.happen(next.at());
        self.scheduler.pop();
        Event::unpack(next.event())
    }

    /// Advances the clock to `at` for an event that is not in the queue.
    #[inline]
    pub(crate) fn happen(&mut self, at: Time) {
        debug_assert!(at >= self.now, "time runs backwards");
        self.now = at;
        self.happened += 1;
    }

    /// Uncounts the last event, because it was an observation.
    pub(crate) fn discount(&mut self) {
        self.happened -= 1;
    }

    /// An event that is due soon, see [`Scheduler::poll_near`].
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

    /// The number of a newly scheduled event, if such numbers decide the order.
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

    /// The key of an event of hop `index` that was given the number `declared`.
    #[inline]
    pub(crate) fn hop_key(&self, at: Time, declared: u32, index: u32) -> Key {
        let packed = event::pack(event::kind::HOP, index);
        Key::new(at, self.tie_break(at, declared, packed), packed)
    }

    /// The rank of a `packed` event among simultaneous events.
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
