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
    /// The window scales of connections that were open before the capture: the smaller end's first.
    scales: HashMap<Key, [u8; 2]>,
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
            scales: HashMap::new(),
        }
    }

    /// The window scales that each end of an open connection advertised before the capture began, as its kernel reports them.
    pub fn know_scales(&mut self, ends: [SocketAddr; 2], scales: [u8; 2]) {
        let [a, b] = ends;
        let scales = if a <= b { scales } else { [scales[1], scales[0]] };
        self.scales.insert(ordered(a, b), scales);
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
        let scales = self.scales.get(&key).filter(|_| !segment.flags.syn);
        connection.get_or_insert_with(|| begin(segment, scales)).take(segment);
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
    ordered(segment.source, segment.destination)
}

fn ordered(a: SocketAddr, b: SocketAddr) -> Key {
    if a <= b { (a, b) } else { (b, a) }
}

/// The connection that `segment` is the first of; `scales` are its ends' window scales, the smaller end's first, if they are known.
fn begin(segment: &Segment, scales: Option<&[u8; 2]>) -> Connection {
    let mut connection = Connection::new(segment);
    if let Some(&[smaller, larger]) = scales {
        let in_order = connection.ends[0] <= connection.ends[1];
        connection.know_scales(if in_order { [smaller, larger] } else { [larger, smaller] });
    }
    connection
}

#[cfg(test)]
mod tests {
    use sweetspot_units::Time;

    use super::*;
    use crate::packet::{Flags, Options};

    fn segment(from: usize, flags: Flags) -> Segment {
        // The sender's address is the larger one.
        let ends = [9, 2].map(|n| SocketAddr::from(([192, 0, 2, n], 5000)));
        Segment {
            time: Time::ZERO,
            source: ends[from],
            destination: ends[1 - from],
            seq: 1,
            ack: 1,
            flags,
            window: 100,
            payload: 0,
            header: 20,
            options: Options::default(),
            id: None,
            ttl: 64,
        }
    }

    #[test]
    fn reported_scales_belong_to_their_ends_and_not_to_a_later_connection() {
        let ack = Flags { ack: true, ..Flags::default() };
        let syn = Flags { syn: true, ..Flags::default() };
        for (first, flags, scales) in
            [(0, ack, [Some(9), Some(2)]), (1, ack, [Some(2), Some(9)]), (0, syn, [None, None])]
        {
            let mut table = Table::default();
            let first = segment(first, flags);
            let ends = [segment(0, ack).source, segment(1, ack).source];
            table.know_scales(ends, [9, 2]);
            table.take(&first);
            let found = table.iter().next().map(|c| [0, 1].map(|side| c.handshake.scale(side)));
            assert_eq!(found, Some(scales), "{first:?}");
        }
    }
}
