use std::collections::VecDeque;

use sweetspot_units::Time;

use crate::Counters;

/// Propagation without reordering: packets come out when they are due, in the order in which they went in.
#[derive(Debug, Clone)]
pub struct Pipe<P> {
    flying: VecDeque<(Time, P)>,
    counters: Counters,
}

impl<P> Default for Pipe<P> {
    fn default() -> Self {
        Pipe { flying: VecDeque::new(), counters: Counters::default() }
    }
}

impl<P> Pipe<P> {
    /// Puts in a packet that comes out at `due`, or right behind the one before it if that one is due later.
    pub fn handle_entry(&mut self, due: Time, packet: P) {
        let due = self.flying.back().map_or(due, |(last, _)| due.max(*last));
        self.counters.received += 1;
        self.counters.queued += 1;
        self.flying.push_back((due, packet));
    }

    /// When the next packet comes out.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.flying.front().map(|(due, _)| *due)
    }

    /// The next packet that is out by `now`, with the time at which it was due.
    pub fn poll_exit(&mut self, now: Time) -> Option<(Time, P)> {
        if self.poll_timeout()? > now {
            return None;
        }
        self.counters.delivered += 1;
        self.counters.queued -= 1;
        debug_assert!(self.counters.conserved());
        self.flying.pop_front()
    }

    /// What this pipe did so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}
