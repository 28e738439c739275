use sweetspot_units::{Duration, Time};

use crate::{Change, Changes, Counters, Discipline, Link, Packet, Pipe, Propagation};

/// The part of a path behind a link: the propagation, the packets in flight, and the changes of link and propagation over time.
#[derive(Debug)]
pub struct Line<P> {
    propagation: Propagation,
    changes: Changes,
    pipe: Pipe<P>,
}

impl<P: Packet> Line<P> {
    /// A line without packets.
    pub fn new(propagation: Propagation, changes: Changes) -> Line<P> {
        Line { propagation, changes, pipe: Pipe::default() }
    }

    /// Replaces the remaining changes by these; their time 0 is `start`.
    pub fn change(&mut self, start: Time, changes: &[Change]) {
        self.changes.replace(start, changes);
    }

    /// Applies the changes due at `now`, when the link is idle or has just finished a packet.
    pub fn apply_changes(&mut self, now: Time, link: &mut Link<P, Discipline<P>>) {
        self.changes.apply(now, link, &mut self.propagation);
    }

    /// The shortest propagation delay of a packet that has not left the link.
    pub fn min_delay(&self) -> Duration {
        self.changes.min(&self.propagation)
    }

    /// `packet` left the link at `left`.
    pub fn handle_departure(&mut self, left: Time, packet: P) {
        let out = self.propagation.handle_departure(left);
        if self.propagation.reorders() {
            self.pipe.handle_overtaking_entry(out, packet);
        } else {
            self.pipe.handle_entry(self.changes.in_order(out), packet);
        }
    }

    /// The exit time of the next packet, or an earlier time. The link finishes its current packet at `link_ends`.
    pub fn poll_timeout(&self, link_ends: Option<Time>) -> Option<Time> {
        let through = self.pipe.poll_timeout();
        if through.is_some() && !self.propagation.reorders() {
            return through;
        }
        // A packet that leaves the link at t comes out no earlier than t + delay.
        let next = link_ends.map(|ends| ends + self.min_delay());
        [through, next].into_iter().flatten().min()
    }

    /// The next packet that is out by `now`, with its exit time.
    pub fn poll_exit(&mut self, now: Time) -> Option<(Time, P)> {
        self.pipe.poll_exit(now)
    }

    /// The counters of this line.
    pub fn counters(&self) -> Counters {
        self.pipe.counters()
    }
}
