/// Things too big to travel in a packet, under a ticket that is not 0. Tickets are used again.
#[derive(Debug)]
pub(crate) struct Shelf<T> {
    slots: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Shelf { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy> Shelf<T> {
    /// Puts a thing away.
    pub(crate) fn put(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = thing;
                slot + 1
            }
            None => {
                self.slots.push(thing);
                self.slots.len() as u32
            }
        }
    }

    /// Takes it back; nothing for ticket 0.
    #[inline]
    pub(crate) fn take(&mut self, ticket: u32) -> Option<T> {
        let slot = ticket.checked_sub(1)?;
        self.free.push(slot);
        Some(self.slots[slot as usize])
    }

    /// Throws it away.
    #[inline]
    pub(crate) fn discard(&mut self, ticket: u32) {
        if ticket > 0 {
            self.free.push(ticket - 1);
        }
    }
}
