use sweetspot_scenario::Path;
use sweetspot_units::Duration;

use super::{Key, QuadHeap, Scheduler};
use crate::index::Index;

/// A timing wheel (Varghese and Lauck 1987) with two rings of slots. A slot of the outer ring lasts as long as the whole
/// inner ring. Later events are in a heap. The time of a push or pop does not depend on the number of pending events.
#[derive(Debug)]
pub struct Wheel {
    /// Slots of the inner ring last 2 to this power nanoseconds.
    shift: u32,
    /// The current slot, counted from time 0.
    now: u64,
    /// The keys of the current slot, in descending order.
    current: Vec<Key>,
    /// The inner ring. A slot lasts about as long as a packet and holds few keys: this is its first node.
    inner: SlotRing<Option<Index>>,
    /// The outer ring. With many flows a slot holds many keys, stored contiguously.
    outer: SlotRing<Vec<Key>>,
    far: QuadHeap,
    /// Events of the outer ring's latest slot that [`Scheduler::poll_near`] has not returned yet.
    pending_near: Vec<Key>,
    /// Spare memory for empty slots of the outer ring.
    spare: Vec<Vec<Key>>,
    /// Before this slot, no slot of the outer ring begins and nothing in the heap is due.
    later: u64,
    /// All keys of the inner ring, each with the next node of its slot.
    nodes: Vec<Node>,
    free: Option<Index>,
    len: usize,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    key: Key,
    next: Option<Index>,
}

/// A ring of slots with two levels of bitmaps of the non-empty ones: a bit per slot, and a bit per word of these bits.
#[derive(Debug)]
struct SlotRing<T> {
    slots: Vec<T>,
    words: [u64; SLOTS / 64],
    summary: u64,
}

/// A ring has 2 to this power slots.
const RING_BITS: u32 = 12;
const SLOTS: usize = 1 << RING_BITS;

impl Wheel {
    /// A wheel for a simulation of `path`: a busy link has one or two events per packet and direction.
    pub fn of(path: &Path) -> Wheel {
        Wheel::new(path.packet / path.narrow().rate / 4)
    }

    /// A wheel for events that are about `gap` apart.
    pub fn new(gap: Duration) -> Wheel {
        Wheel {
            shift: gap.as_nanos().max(1).ilog2(),
            now: 0,
            current: Vec::new(),
            inner: SlotRing::new(None),
            outer: SlotRing::new(Vec::new()),
            far: QuadHeap::default(),
            pending_near: Vec::new(),
            spare: Vec::new(),
            later: u64::MAX,
            nodes: Vec::new(),
            free: None,
            len: 0,
        }
    }

    #[inline]
    fn slot(&self, key: Key) -> u64 {
        key.at().as_nanos() >> self.shift
    }

    /// The start of the outer ring's next non-empty slot.
    fn outer_slot(&self) -> u64 {
        match self.outer.next_after(self.now >> RING_BITS) {
            u64::MAX => u64::MAX,
            slot => slot << RING_BITS,
        }
    }

    /// The slot of the heap's first key; later than all slots if the heap is empty.
    fn far_slot(&mut self) -> u64 {
        let key = self.far.peek();
        self.slot(key)
    }

    /// Puts a key into the structure for its distance from the current slot.
    #[inline]
    fn place(&mut self, key: Key) {
        let slot = self.slot(key);
        if slot <= self.now {
            return self.place_now(key);
        }
        if slot - self.now < SLOTS as u64 {
            let node = self.free_node();
            let next = self.inner.fill(slot).replace(node);
            self.fill_node(node, Node { key, next });
        } else {
            self.place_later(key, slot);
        }
    }

    /// Puts a key into the outer ring or the heap.
    fn place_later(&mut self, key: Key, slot: u64) {
        if (slot >> RING_BITS) - (self.now >> RING_BITS) < SLOTS as u64 {
            let keys = self.outer.fill(slot >> RING_BITS);
            if keys.capacity() == 0 {
                *keys = self.spare.pop().unwrap_or_default();
            }
            keys.push(key);
            self.later = self.later.min(slot >> RING_BITS << RING_BITS);
        } else {
            self.far.push(key);
            self.later = self.later.min(slot);
        }
    }

    /// Inserts a key into the current slot, in order.
    #[inline]
    fn place_now(&mut self, key: Key) {
        let mut at = self.current.len();
        self.current.push(key);
        while at > 0 && self.current[at - 1] < key {
            self.current[at] = self.current[at - 1];
            at -= 1;
        }
        self.current[at] = key;
    }

    /// The node that [`Wheel::fill_node`] will fill.
    #[inline]
    fn free_node(&self) -> Index {
        self.free.unwrap_or(Index::new(self.nodes.len()))
    }

    #[inline]
    fn fill_node(&mut self, at: Index, node: Node) {
        if self.free.is_none() {
            self.nodes.push(node);
        } else {
            self.free = self.nodes[at.get()].next;
            self.nodes[at.get()] = node;
        }
    }

    /// Begins a slot of the inner ring: moves its keys into the current slot.
    #[inline]
    fn begin(&mut self, slot: u64) {
        let mut first = self.inner.clear(slot).take();
        while let Some(at) = first {
            let Node { key, next } = self.nodes[at.get()];
            self.nodes[at.get()].next = self.free;
            self.free = Some(at);
            self.place(key);
            first = next;
        }
    }

    /// Advances to the next non-empty slot.
    #[inline]
    fn advance(&mut self) {
        while self.current.is_empty() && self.len > 0 {
            let inner = self.inner.next_after(self.now);
            if inner < self.later {
                self.now = inner;
                self.begin(inner);
            } else {
                self.advance_far(inner);
            }
        }
    }

    /// Begins a slot of the outer ring and processes it, or takes a due key from the heap.
    #[cold]
    fn advance_far(&mut self, inner: u64) {
        let outer = self.outer_slot();
        let far = self.far_slot();
        self.now = inner.min(outer).min(far);
        if far == self.now {
            while self.far_slot() == far
                && let Some(key) = self.far.pop()
            {
                self.place(key);
            }
        }
        if outer == self.now {
            self.begin_outer(outer >> RING_BITS);
        }
        if inner == self.now {
            self.begin(inner);
        }
        self.later = self.outer_slot().min(self.far_slot());
    }

    /// Begins a slot of the outer ring: distributes its keys over the inner ring.
    fn begin_outer(&mut self, slot: u64) {
        let keys = core::mem::take(self.outer.clear(slot));
        for key in &keys {
            self.place(*key);
        }
        let mut spare = core::mem::replace(&mut self.pending_near, keys);
        spare.clear();
        self.spare.push(spare);
    }
}

impl Scheduler for Wheel {
    #[inline]
    fn push(&mut self, key: Key) {
        self.len += 1;
        self.place(key);
    }

    #[inline]
    fn peek(&mut self) -> Key {
        if self.current.is_empty() {
            self.advance();
        }
        self.current.last().copied().unwrap_or(Key::NEVER)
    }

    #[inline]
    fn pop(&mut self) -> Option<Key> {
        if self.current.is_empty() {
            self.advance();
        }
        let key = self.current.pop()?;
        self.len -= 1;
        Some(key)
    }

    fn poll_near(&mut self) -> Option<u32> {
        self.pending_near.pop().map(Key::event)
    }

    fn len(&self) -> usize {
        self.len
    }
}

impl<T: Clone> SlotRing<T> {
    fn new(empty: T) -> SlotRing<T> {
        SlotRing { slots: vec![empty; SLOTS], words: [0; SLOTS / 64], summary: 0 }
    }

    /// The contents of `slot`, for adding a key.
    #[inline]
    fn fill(&mut self, slot: u64) -> &mut T {
        let at = slot as usize % SLOTS;
        self.words[at / 64] |= 1 << (at % 64);
        self.summary |= 1 << (at / 64);
        &mut self.slots[at]
    }

    /// The contents of `slot`, for removal.
    #[inline]
    fn clear(&mut self, slot: u64) -> &mut T {
        let at = slot as usize % SLOTS;
        self.words[at / 64] &= !(1 << (at % 64));
        if self.words[at / 64] == 0 {
            self.summary &= !(1 << (at / 64));
        }
        &mut self.slots[at]
    }

    /// The next non-empty slot after `now`, less than a ring's length ahead.
    #[inline]
    fn next_after(&self, now: u64) -> u64 {
        if self.summary == 0 {
            return u64::MAX;
        }
        let from = (now + 1) as usize % SLOTS;
        let (word, bit) = (from / 64, from % 64);
        // Bits from `bit` on in this word, then other words, then this word again from its start.
        let here = self.words[word] >> bit;
        let ahead = if here != 0 {
            u64::from(here.trailing_zeros())
        } else {
            let rotated = self.summary.rotate_right(word as u32 + 1);
            let words = u64::from(rotated.trailing_zeros()) + 1;
            let other = (word + words as usize) % (SLOTS / 64);
            let bits = u64::from(self.words[other].trailing_zeros());
            words * 64 + bits - bit as u64
        };
        now + 1 + ahead
    }
}
