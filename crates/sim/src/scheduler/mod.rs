//! Schedulers: queues that return events in order of time.
//!
//! [`QuadHeap`] is the fastest with few pending events, [`Wheel`] with many. [`BinaryHeapScheduler`] is simple and
//! slow; tests compare the others with it. A simulation has the same outcome with each of them.

mod binary_heap;
mod heap;
mod wheel;

pub use binary_heap::BinaryHeapScheduler;
pub use heap::QuadHeap;
pub use wheel::Wheel;

use sweetspot_units::Time;

/// A queue of events, each with its [`Key`].
pub trait Scheduler {
    /// Adds an event.
    fn push(&mut self, key: Key);

    /// The key of the next event; [`Key::NEVER`] if none is pending.
    fn peek(&mut self) -> Key;

    /// Removes the next event; `None` if none is pending.
    fn pop(&mut self) -> Option<Key>;

    /// One of the events that are near, each reported once. They happen soon, or just did, so their data can be prefetched
    /// together. `None` if the scheduler does not track which events are near.
    fn poll_near(&mut self) -> Option<u32> {
        None
    }

    /// Number of pending events.
    fn len(&self) -> usize;

    /// Whether no event is pending.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An event with its time and order. Keys compare by time, then by order, then by event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u128);

impl Key {
    /// A key later than that any event has.
    pub const NEVER: Key = Key(u128::MAX);

    /// The key of `event` at `at`. Among simultaneous events, the one with the lowest `order` is first.
    #[inline]
    pub fn new(at: Time, order: u32, event: u32) -> Key {
        Key(u128::from(at.as_nanos()) << 64 | u128::from(order) << 32 | u128::from(event))
    }

    /// The event's time.
    #[inline]
    pub fn at(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }

    /// The event.
    #[inline]
    pub fn event(self) -> u32 {
        self.0 as u32
    }
}
