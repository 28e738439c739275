use crate::packet::{Packet, TICKET};

/// Things too big to travel in a packet, which carries a ticket instead; ticket 0 is none.
/// Tickets are used again.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy> Slab<T> {
    /// Puts a thing away.
    pub(crate) fn put(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = thing;
                slot + 1
            }
            None => {
                self.slots.push(thing);
                debug_assert!(self.slots.len() < TICKET as usize);
                self.slots.len() as u32
            }
        }
    }

    /// Takes back what `packet` has a ticket for.
    #[inline]
    pub(crate) fn take(&mut self, packet: &Packet) -> Option<T> {
        let slot = (packet.extra & TICKET).checked_sub(1)?;
        self.free.push(slot);
        Some(self.slots[slot as usize])
    }
}
