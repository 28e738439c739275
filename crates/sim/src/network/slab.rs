use core::marker::PhantomData;

/// Storage for packet contents too large to be copied with the packet, which holds the key.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<T>,
    free: Vec<u32>,
}

/// The position of a `T` in its [`Slab`]. It is below 2^31 - 1, so that a packet has a spare bit
/// next to it.
#[derive(Debug)]
pub(crate) struct SlabKey<T> {
    index: u32,
    holds: PhantomData<T>,
}

impl<T> Clone for SlabKey<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SlabKey<T> {}

impl<T> SlabKey<T> {
    #[inline]
    pub(crate) fn new(index: u32) -> SlabKey<T> {
        SlabKey { index, holds: PhantomData }
    }

    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.index
    }

    /// An optional key in 31 bits.
    #[inline]
    pub(crate) fn pack(key: Option<SlabKey<T>>) -> u32 {
        key.map_or(0, |key| key.index + 1)
    }

    #[inline]
    pub(crate) fn unpack(packed: u32) -> Option<SlabKey<T>> {
        packed.checked_sub(1).map(SlabKey::new)
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy> Slab<T> {
    pub(crate) fn put(&mut self, thing: T) -> SlabKey<T> {
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = thing;
                SlabKey::new(index)
            }
            None => {
                self.slots.push(thing);
                debug_assert!(self.slots.len() < i32::MAX as usize);
                SlabKey::new(self.slots.len() as u32 - 1)
            }
        }
    }

    /// Removes the item. Its key is reused.
    #[inline]
    pub(crate) fn take(&mut self, key: SlabKey<T>) -> T {
        self.free.push(key.index);
        self.slots[key.index as usize]
    }
}
