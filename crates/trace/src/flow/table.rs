use std::collections::HashMap;
use std::net::SocketAddr;

use super::connection::{Connection, Ending};
use crate::packet::Segment;

/// Connections followed at once. A new one evicts the one that has been silent longest.
pub const LIVE_CONNECTIONS: usize = 16_384;

const NONE: usize = usize::MAX;

/// The connections under way, in the order in which they were last heard of.
#[derive(Debug)]
pub struct Table {
    /// Looked up, never iterated: its order is not the same twice.
    index: HashMap<Key, usize>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// The slot used last and the one used longest ago.
    newest: usize,
    oldest: usize,
    capacity: usize,
    evicted: u64,
}

/// Both ends, the smaller first: the same for both directions.
type Key = (SocketAddr, SocketAddr);

#[derive(Debug)]
struct Slot {
    key: Key,
    connection: Option<Connection>,
    newer: usize,
    older: usize,
}

impl Default for Table {
    fn default() -> Table {
        Table::with_capacity(LIVE_CONNECTIONS)
    }
}

impl Table {
    /// A table that follows `capacity` connections at once, one at least.
    pub fn with_capacity(capacity: usize) -> Table {
        Table {
            index: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            capacity: capacity.max(1),
            evicted: 0,
        }
    }

    /// Takes a segment. A connection that this ends, because another begins between the same
    /// ends or takes its place, comes back whole.
    pub fn take(&mut self, segment: &Segment) -> Option<Connection> {
        let key = key(segment);
        // Most segments belong to the connection of the one before.
        let known = match self.slots.get(self.newest) {
            Some(slot) if slot.key == key => Some(self.newest),
            _ => self.index.get(&key).copied(),
        };
        let mut ended = None;
        let slot = match known {
            Some(slot) => {
                self.touch(slot);
                let connection = &mut self.slots[slot].connection;
                ended = connection.take_if(|connection| connection.is_followed_by(segment));
                slot
            }
            None => {
                if self.index.len() == self.capacity {
                    self.evicted += 1;
                    ended = self.remove(self.oldest).map(|mut connection| {
                        if connection.ending == Ending::Open {
                            connection.ending = Ending::Evicted;
                        }
                        connection
                    });
                }
                self.insert(key)
            }
        };
        let connection = &mut self.slots[slot].connection;
        connection.get_or_insert_with(|| Connection::new(segment)).take(segment);
        if let Some(ended) = &mut ended {
            ended.end();
        }
        ended
    }

    /// The next of the connections that are left when the capture is over, the longest silent
    /// first.
    pub fn drain(&mut self) -> Option<Connection> {
        let mut connection = self.remove(self.oldest)?;
        connection.end();
        Some(connection)
    }

    /// The connections under way, those that were last heard of first.
    pub fn iter(&self) -> impl Iterator<Item = &Connection> {
        let slot = |at: usize| self.slots.get(at);
        std::iter::successors(slot(self.newest), move |newer| slot(newer.older))
            .filter_map(|slot| slot.connection.as_ref())
    }

    /// The number of connections evicted.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    fn insert(&mut self, key: Key) -> usize {
        let entry = Slot { key, connection: None, newer: NONE, older: NONE };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                self.slots.len() - 1
            }
        };
        self.index.insert(key, slot);
        self.link(slot);
        slot
    }

    fn remove(&mut self, slot: usize) -> Option<Connection> {
        let key = self.slots.get(slot)?.key;
        self.unlink(slot);
        self.index.remove(&key);
        self.free.push(slot);
        self.slots[slot].connection.take()
    }

    fn touch(&mut self, slot: usize) {
        if self.newest != slot {
            self.unlink(slot);
            self.link(slot);
        }
    }

    fn link(&mut self, slot: usize) {
        self.slots[slot].older = self.newest;
        self.slots[slot].newer = NONE;
        match self.slots.get_mut(self.newest) {
            Some(newest) => newest.newer = slot,
            None => self.oldest = slot,
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: usize) {
        let Slot { newer, older, .. } = self.slots[slot];
        match self.slots.get_mut(newer) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
    }
}

fn key(segment: &Segment) -> Key {
    let (a, b) = (segment.source, segment.destination);
    if a <= b { (a, b) } else { (b, a) }
}
