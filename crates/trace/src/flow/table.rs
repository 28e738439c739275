use std::collections::HashMap;
use std::net::SocketAddr;

use super::connection::{Connection, Ending};
use super::stream::SenderReport;
use crate::packet::Segment;

/// The maximum number of connections followed at once. A new one evicts the connection with the longest silence.
pub const LIVE_CONNECTIONS: usize = 16_384;

const NONE: usize = usize::MAX;

/// The connections followed, ordered by their latest packet.
#[derive(Debug)]
pub struct Table {
    /// For lookups only: its iteration order is not deterministic.
    index: HashMap<Key, usize>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// The slots with the latest and the earliest last packet.
    newest: usize,
    oldest: usize,
    capacity: usize,
    evicted: u64,
    /// The window scales of connections opened before the capture, the smaller end's first.
    scales: HashMap<Key, [u8; 2]>,
}

/// Both ends of a connection, the smaller one first, so that both directions have the same key.
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
    /// A table that follows at most `capacity` connections at once, but at least one.
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

    /// Sets the window scales of an open connection's ends, as the kernel reports them: they were advertised before the capture
    /// began.
    pub fn know_scales(&mut self, ends: [SocketAddr; 2], scales: [u8; 2]) {
        let [a, b] = ends;
        let scales = if a <= b { scales } else { [scales[1], scales[0]] };
        self.scales.insert(ordered(a, b), scales);
    }

    /// Sets what the kernel at the first of `ends` reports on the data that an open connection sends.
    pub fn know_sender(&mut self, ends: [SocketAddr; 2], report: SenderReport) {
        if let Some((connection, side)) = self.open(ends) {
            connection.streams[side].know_sender(report);
        }
    }

    /// Sets what the kernel at the first of `ends` reports on the program that reads an open connection's data.
    pub fn know_reader(&mut self, ends: [SocketAddr; 2], is_late: bool) {
        if let Some((connection, side)) = self.open(ends) {
            connection.streams[1 - side].know_reader(is_late);
        }
    }

    /// The open connection between `ends`, and the index of the first of them.
    fn open(&mut self, ends: [SocketAddr; 2]) -> Option<(&mut Connection, usize)> {
        let slot = *self.index.get(&ordered(ends[0], ends[1]))?;
        let connection = self.slots[slot].connection.as_mut()?;
        let side = usize::from(connection.ends[0] != ends[0]);
        Some((connection, side))
    }

    /// Handles a segment. Returns a connection that it ends, because another begins between the same ends or needs the slot.
    pub fn take(&mut self, segment: &Segment) -> Option<Connection> {
        let key = key(segment);
        // Most segments belong to the same connection as the segment before.
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

    /// Removes and returns one of the connections left at the end of the capture, the one with the longest silence first.
    pub fn drain(&mut self) -> Option<Connection> {
        let mut connection = self.remove(self.oldest)?;
        connection.end();
        Some(connection)
    }

    /// The connections followed, the one with the latest packet first.
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

/// A connection that begins with `segment`. `scales` are the window scales of its ends, the smaller end's first, if they are
/// known.
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
        // The sender has the larger address.
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
    fn known_window_scales_do_not_apply_to_a_later_connection() {
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
