//! What happens next.
//!
//! Every flow and source has one pending event at most; a [`Scheduler`] gives them back in order
//! of time. [`BinaryHeapScheduler`] is the slow one that the others are tested against.

mod binary_heap;
mod heap;
mod wheel;

pub use binary_heap::BinaryHeapScheduler;
pub use heap::QuadHeap;
pub use wheel::Wheel;

use sweetspot_units::Time;

/// A queue of events.
pub trait Scheduler {
    /// An event is to happen.
    fn push(&mut self, key: Key);

    /// The next event, [`Key::NEVER`] where none is pending.
    fn peek(&mut self) -> Key;

    /// The next event, which is pending no more.
    fn pop(&mut self) -> Option<Key>;

    /// One of the events that have come near, each once: they happen soon, or just did, and what
    /// they need can be read from memory together. For a scheduler that knows when that is.
    fn poll_near(&mut self) -> Option<u32> {
        None
    }

    /// How many are pending.
    fn len(&self) -> usize;

    /// Whether none is pending.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An event with its place in time: keys compare by time, then by order, then by event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u128);

impl Key {
    /// Later than everything.
    pub const NEVER: Key = Key(u128::MAX);

    /// `event` at `at`; the lower `order` is first among events of the same time.
    #[inline]
    pub fn new(at: Time, order: u32, event: u32) -> Key {
        Key(u128::from(at.as_nanos()) << 64 | u128::from(order) << 32 | u128::from(event))
    }

    /// When.
    #[inline]
    pub fn at(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }

    /// What.
    #[inline]
    pub fn event(self) -> u32 {
        self.0 as u32
    }
}
