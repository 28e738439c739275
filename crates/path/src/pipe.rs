use std::collections::VecDeque;

use sweetspot_units::Time;

use crate::Counters;

/// Packets in flight: each leaves when it is due. [`Pipe::handle_entry`] keeps the order in which packets entered;
/// [`Pipe::handle_overtaking_entry`] does not.
#[derive(Debug, Clone)]
pub struct Pipe<P> {
    in_flight: VecDeque<(Time, P)>,
    counters: Counters,
}

impl<P> Default for Pipe<P> {
    fn default() -> Self {
        Pipe { in_flight: VecDeque::new(), counters: Counters::default() }
    }
}

impl<P> Pipe<P> {
    /// Adds a packet that leaves at `due`, or directly after the previous one if that one is due later.
    pub fn handle_entry(&mut self, due: Time, packet: P) {
        let due = self.in_flight.back().map_or(due, |(last, _)| due.max(*last));
        self.handle_overtaking_entry(due, packet);
    }

    /// Adds a packet that leaves at `due`, before those that are due later. Packets due at the same time keep their
    /// order.
    pub fn handle_overtaking_entry(&mut self, due: Time, packet: P) {
        self.counters.received += 1;
        self.counters.queued += 1;
        // Few packets are overtaken, so search from the end.
        let later = self.in_flight.iter().rev().take_while(|(other, _)| *other > due).count();
        self.in_flight.insert(self.in_flight.len() - later, (due, packet));
    }

    /// The exit time of the next packet.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.in_flight.front().map(|(due, _)| *due)
    }

    /// The next packet that is out by `now`, with its exit time.
    pub fn poll_exit(&mut self, now: Time) -> Option<(Time, P)> {
        if self.poll_timeout()? > now {
            return None;
        }
        self.counters.delivered += 1;
        self.counters.queued -= 1;
        debug_assert!(self.counters.conserved());
        self.in_flight.pop_front()
    }

    /// The counters of this pipe.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}
