use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sweetspot_units::Time;

use super::{Scheduler, key, unlock};

/// The standard library's heap.
#[derive(Debug, Default)]
pub struct Obvious(BinaryHeap<Reverse<u128>>);

impl Scheduler for Obvious {
    fn push(&mut self, at: Time, order: u32, event: u32) {
        self.0.push(Reverse(key(at, order, event)));
    }

    fn pop(&mut self) -> Option<(Time, u32)> {
        self.0.pop().map(|Reverse(key)| unlock(key))
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}
