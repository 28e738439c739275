use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use sweetspot_units::Time;

use crate::Counters;

/// Parallel pipes of different lengths: each packet leaves when it is due, even before an earlier one in a longer
/// pipe. Packets due at the same time leave in the order in which they entered.
#[derive(Debug)]
pub struct Fan<P> {
    in_flight: BinaryHeap<Reverse<PacketInFlight<P>>>,
    counters: Counters,
}

/// A packet in flight. Comparisons use only its due time and its number.
#[derive(Debug)]
struct PacketInFlight<P> {
    due: Time,
    number: u64,
    packet: P,
}

impl<P> Default for Fan<P> {
    fn default() -> Self {
        Fan { in_flight: BinaryHeap::new(), counters: Counters::default() }
    }
}

impl<P> Fan<P> {
    /// Adds a packet that leaves at `due`.
    pub fn handle_entry(&mut self, due: Time, packet: P) {
        let number = self.counters.received;
        self.counters.received += 1;
        self.counters.queued += 1;
        self.in_flight.push(Reverse(PacketInFlight { due, number, packet }));
    }

    /// The exit time of the next packet.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.in_flight.peek().map(|Reverse(first)| first.due)
    }

    /// The next packet that is out by `now`, with its exit time.
    pub fn poll_exit(&mut self, now: Time) -> Option<(Time, P)> {
        if self.poll_timeout()? > now {
            return None;
        }
        self.counters.delivered += 1;
        self.counters.queued -= 1;
        debug_assert!(self.counters.conserved());
        self.in_flight.pop().map(|Reverse(first)| (first.due, first.packet))
    }

    /// The counters of this fan.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

impl<P> PacketInFlight<P> {
    fn key(&self) -> (Time, u64) {
        (self.due, self.number)
    }
}

impl<P> Ord for PacketInFlight<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<P> PartialOrd for PacketInFlight<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for PacketInFlight<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for PacketInFlight<P> {}
