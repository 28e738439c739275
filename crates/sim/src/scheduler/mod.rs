//! What happens next.
//!
//! Every link, flow and source has one pending event at most; a [`Scheduler`] gives them back in
//! order of time. [`Obvious`] is the slow one that the others are tested against.

mod heap;
mod obvious;

pub use heap::QuadHeap;
pub use obvious::Obvious;

use sweetspot_units::Time;

/// A queue of events.
pub trait Scheduler {
    /// `event` is to happen at `at`. Among events of the same time the lower `order` is first,
    /// then the lower event.
    fn push(&mut self, at: Time, order: u32, event: u32);

    /// The next event.
    fn pop(&mut self) -> Option<(Time, u32)>;

    /// How many are pending.
    fn len(&self) -> usize;

    /// Whether none is pending.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An event as one number: time above order above event.
#[inline]
fn key(at: Time, order: u32, event: u32) -> u128 {
    u128::from(at.as_nanos()) << 64 | u128::from(order) << 32 | u128::from(event)
}

/// Time and event of a key.
#[inline]
fn unlock(key: u128) -> (Time, u32) {
    (Time::from_nanos((key >> 64) as u64), key as u32)
}
