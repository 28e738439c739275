use super::{Key, Scheduler};

/// A heap with four children per node. It has half the depth of a binary heap, and the children of
/// a node share a cache line. A popped event leaves the top open for the next push, which is how a
/// busy flow schedules its next event.
#[derive(Debug, Default)]
pub struct QuadHeap {
    keys: Vec<Key>,
    /// Whether the top was popped and not yet replaced.
    open: bool,
}

impl QuadHeap {
    #[inline]
    fn sift_down(&mut self, key: Key) {
        let keys = &mut self.keys[..];
        let mut at = 0;
        loop {
            let first = 4 * at + 1;
            let min = match keys.get(first..first + 4) {
                Some(four) => first + min_of_four(four),
                None => match (first..keys.len()).min_by_key(|child| keys[*child]) {
                    None => break,
                    Some(child) => child,
                },
            };
            if keys[min] >= key {
                break;
            }
            keys[at] = keys[min];
            at = min;
        }
        keys[at] = key;
    }

    #[inline]
    fn sift_up(&mut self, key: Key) {
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

    /// Puts the last key into the open place, if nothing was pushed there.
    #[inline]
    fn close(&mut self) {
        if self.open {
            self.open = false;
            if let Some(last) = self.keys.pop()
                && !self.keys.is_empty()
            {
                self.sift_down(last);
            }
        }
    }
}

/// Branch-free: a predictor cannot guess which of four random keys is the smallest.
#[inline]
fn min_of_four(four: &[Key]) -> usize {
    let low = usize::from(four[1] < four[0]);
    let high = 2 + usize::from(four[3] < four[2]);
    if four[high] < four[low] { high } else { low }
}

impl Scheduler for QuadHeap {
    #[inline]
    fn push(&mut self, key: Key) {
        if self.open {
            self.open = false;
            self.sift_down(key);
        } else {
            self.sift_up(key);
        }
    }

    #[inline]
    fn peek(&mut self) -> Key {
        self.close();
        self.keys.first().copied().unwrap_or(Key::NEVER)
    }

    #[inline]
    fn pop(&mut self) -> Option<Key> {
        self.close();
        let top = self.keys.first().copied();
        self.open = top.is_some();
        top
    }

    fn len(&self) -> usize {
        self.keys.len() - usize::from(self.open)
    }
}
