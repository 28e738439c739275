use sweetspot_units::Time;

use super::{Scheduler, key, unlock};

/// A heap with four children per node: half the depth of a binary one, and the children of a
/// node share a cache line. What is popped leaves its place at the top open for what is pushed
/// next, which is how a link or a flow that stays busy asks for its next event.
#[derive(Debug, Default)]
pub struct QuadHeap {
    keys: Vec<u128>,
    /// Whether the top has been popped and nothing has taken its place.
    open: bool,
}

impl QuadHeap {
    #[inline]
    fn sift_down(&mut self, key: u128) {
        let keys = &mut self.keys[..];
        let mut at = 0;
        loop {
            let first = 4 * at + 1;
            let least = if first + 4 <= keys.len() {
                let half = |a: usize, b: usize| if keys[b] < keys[a] { b } else { a };
                let (low, high) = (half(first, first + 1), half(first + 2, first + 3));
                if keys[high] < keys[low] { high } else { low }
            } else {
                match (first..keys.len()).min_by_key(|child| keys[*child]) {
                    None => break,
                    Some(child) => child,
                }
            };
            if keys[least] >= key {
                break;
            }
            keys[at] = keys[least];
            at = least;
        }
        keys[at] = key;
    }

    #[inline]
    fn sift_up(&mut self, key: u128) {
        let mut at = self.keys.len();
        self.keys.push(key);
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[at] = self.keys[parent];
            at = parent;
        }
        self.keys[at] = key;
    }
}

impl Scheduler for QuadHeap {
    #[inline]
    fn push(&mut self, at: Time, order: u32, event: u32) {
        let key = key(at, order, event);
        if self.open {
            self.open = false;
            self.sift_down(key);
        } else {
            self.sift_up(key);
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<(Time, u32)> {
        if self.open {
            let last = self.keys.pop()?;
            if !self.keys.is_empty() {
                self.sift_down(last);
            }
        }
        self.open = !self.keys.is_empty();
        self.keys.first().map(|key| unlock(*key))
    }

    fn len(&self) -> usize {
        self.keys.len() - usize::from(self.open)
    }
}
