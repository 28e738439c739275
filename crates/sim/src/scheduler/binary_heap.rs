use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Key, Scheduler};

/// The standard library's binary heap as a [`Scheduler`].
#[derive(Debug, Default)]
pub struct BinaryHeapScheduler(BinaryHeap<Reverse<Key>>);

impl Scheduler for BinaryHeapScheduler {
    fn push(&mut self, key: Key) {
        self.0.push(Reverse(key));
    }

    fn peek(&mut self) -> Key {
        self.0.peek().map_or(Key::NEVER, |Reverse(key)| *key)
    }

    fn pop(&mut self) -> Option<Key> {
        self.0.pop().map(|Reverse(key)| key)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}
