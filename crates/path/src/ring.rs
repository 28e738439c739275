/// A queue of small `Copy` items in a ring buffer. Its length is a power of two, so indexing needs no branch.
#[derive(Debug, Clone)]
pub struct Ring<T> {
    slots: Box<[T]>,
    /// Total numbers of items removed and added; both wrap around.
    first: u32,
    end: u32,
}

/// The smallest number of slots after an item was added.
const MIN_SLOTS: usize = 4;

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { slots: Box::default(), first: 0, end: 0 }
    }
}

impl<T: Copy + Default> Ring<T> {
    /// Appends an item.
    #[inline(always)]
    pub fn push_back(&mut self, thing: T) {
        if self.len() == self.slots.len() {
            self.grow();
        }
        let at = self.place(self.end);
        self.slots[at] = thing;
        self.end = self.end.wrapping_add(1);
    }

    /// The first item.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        if self.is_empty() {
            return None;
        }
        self.slots.get(self.place(self.first))
    }

    /// The last item.
    #[inline]
    pub fn back(&self) -> Option<&T> {
        if self.is_empty() {
            return None;
        }
        self.slots.get(self.place(self.end.wrapping_sub(1)))
    }

    /// Removes the first item.
    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<T> {
        let thing = self.front().copied()?;
        self.first = self.first.wrapping_add(1);
        Some(thing)
    }

    /// The item at index `number`.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&T> {
        if number >= self.len() {
            return None;
        }
        self.slots.get(self.place(self.first.wrapping_add(number as u32)))
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        (0..self.len() as u32).map(|n| &self.slots[self.place(self.first.wrapping_add(n))])
    }

    /// The number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.end.wrapping_sub(self.first) as usize
    }

    /// Whether there are no items.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// Removes all items.
    #[inline]
    pub fn clear(&mut self) {
        self.first = self.end;
    }

    #[inline]
    fn place(&self, number: u32) -> usize {
        number as usize & self.slots.len().wrapping_sub(1)
    }

    /// Doubles the capacity. It takes no reference to the new item, which would force the item into memory.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let room = (self.slots.len() * 2).max(MIN_SLOTS);
        let mut slots = vec![T::default(); room].into_boxed_slice();
        for (slot, thing) in slots.iter_mut().zip(self.iter()) {
            *slot = *thing;
        }
        (self.first, self.end) = (0, self.len() as u32);
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_ring_behaves_like_a_vec_deque(steps in prop::collection::vec(0u32..7, 1..300), begin in any::<u32>()) {
            let mut ring = Ring { slots: Box::default(), first: begin, end: begin };
            let mut oracle = VecDeque::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    0..=3 => {
                        ring.push_back(number);
                        oracle.push_back(number);
                    }
                    4..=5 => prop_assert_eq!(ring.pop_front(), oracle.pop_front()),
                    _ if number % 31 == 0 => {
                        ring.clear();
                        oracle.clear();
                    }
                    _ => {}
                }
                prop_assert_eq!(ring.front(), oracle.front());
                prop_assert_eq!(ring.back(), oracle.back());
                prop_assert_eq!(ring.get(2), oracle.get(2));
                prop_assert_eq!(ring.len(), oracle.len());
                prop_assert_eq!(ring.is_empty(), oracle.is_empty());
                prop_assert!(ring.iter().eq(oracle.iter()));
            }
        }
    }
}
