use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::{Counters, Direction, DirectionSpec, Dropped, Packet, Pipe, Variation};

/// Directions in series, like the links between routers: a packet that leaves one arrives at the next at the same instant. A
/// packet may enter at any direction and leave after any later one.
///
/// Events are processed in the order of time, up to the present and no further than needed. A late call therefore delays
/// nothing: neither drops nor exit times depend on when the caller polls.
#[derive(Debug)]
pub struct Chain<P> {
    hops: Vec<Direction<Routed<P>>>,
    /// Times up to which all arrivals at each hop were passed in; the next arrival there is no earlier.
    decided: Vec<Time>,
    longest: Vec<Bytes>,
    /// Packets that have left the chain.
    out: Pipe<P>,
    dropped: VecDeque<Dropped<P>>,
    /// Whether a packet ever left before the last hop.
    leaves_early: bool,
    counters: Counters,
}

/// A packet and the last hop that it passes.
#[derive(Debug)]
struct Routed<P> {
    packet: P,
    last: usize,
}

impl<P: Packet> Packet for Routed<P> {
    fn wire_size(&self) -> Bytes {
        self.packet.wire_size()
    }

    fn flow(&self) -> u64 {
        self.packet.flow()
    }

    fn mark_ecn(&mut self) -> bool {
        self.packet.mark_ecn()
    }
}

impl<P: Packet> Chain<P> {
    /// Idle directions described by `specs` (at least one), for packets of up to `mtu`. `seed` determines losses and jitter,
    /// separately for each hop.
    pub fn new(specs: &[DirectionSpec], mtu: Bytes, seed: u64) -> Chain<P> {
        assert!(!specs.is_empty(), "a chain has a hop");
        // The first hop has the same seed as a single direction. An odd factor makes the other seeds differ (2^64 over the
        // golden ratio).
        let seed_of = |hop: usize| seed ^ (hop as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hops = specs.iter().enumerate();
        Chain {
            hops: hops.map(|(hop, spec)| Direction::new(spec, mtu, seed_of(hop))).collect(),
            decided: vec![Time::ZERO; specs.len()],
            longest: vec![Bytes::ZERO; specs.len()],
            out: Pipe::default(),
            dropped: VecDeque::new(),
            leaves_early: false,
            counters: Counters::default(),
        }
    }

    /// The number of hops.
    pub fn hops(&self) -> usize {
        self.hops.len()
    }

    /// The earliest time at which a packet can still arrive at `hop`: events there before it are decided.
    pub fn decided(&self, hop: usize) -> Time {
        self.decided[hop]
    }

    /// A packet arrives at hop `first` at `now`, which must not be before [`Chain::decided`], and leaves after hop `last`.
    /// Returns whether it was accepted; a dropped one comes out of [`Chain::poll_dropped`].
    pub fn handle_arrival(&mut self, now: Time, (first, last): (usize, usize), packet: P) -> bool {
        self.counters.received += 1;
        self.counters.queued += 1;
        self.leaves_early |= last + 1 < self.hops.len();
        self.advance(first, now);
        self.enter(first, now, Routed { packet, last })
    }

    /// Time of the next call of [`Chain::poll_delivery`]; `None` while the chain is empty.
    pub fn poll_timeout(&self) -> Option<Time> {
        let mut due = self.out.poll_timeout();
        let mut behind = Duration::ZERO;
        for hop in self.hops.iter().rev() {
            let own = hop.poll_timeout().map(|through| through + behind);
            due = [due, own].into_iter().flatten().min();
            if !self.leaves_early {
                behind += hop.min_delay();
            }
        }
        due
    }

    /// The next packet that has left the chain by `now`, with its exit time.
    pub fn poll_delivery(&mut self, now: Time) -> Option<(Time, P)> {
        self.work_off(self.hops.len(), now);
        let through = self.out.poll_exit(now)?;
        self.counters.delivered += 1;
        self.counters.queued -= 1;
        debug_assert!(self.counters.conserved());
        Some(through)
    }

    /// The next packet that was dropped.
    pub fn poll_dropped(&mut self) -> Option<Dropped<P>> {
        self.dropped.pop_front()
    }

    /// The shortest time from the first hop's queue to the end.
    pub fn min_delay(&self) -> Duration {
        self.hops.iter().fold(Duration::ZERO, |sum, hop| sum + hop.min_delay())
    }

    /// Starts the `variation` of hop `hop`; its time 0 is `start`.
    pub fn vary(&mut self, hop: usize, start: Time, variation: &Variation) {
        self.hops[hop].vary(start, variation);
    }

    /// Changes the rate of `hop` from `now` on.
    pub fn set_rate(&mut self, hop: usize, now: Time, rate: Rate) {
        self.advance(hop, now);
        self.hops[hop].set_rate(now, rate);
    }

    /// Processes events up to and at `hop` until `now`, which brings its queue up to date.
    pub fn advance(&mut self, hop: usize, now: Time) {
        self.work_off(hop, now);
        self.hops[hop].advance(now);
        self.note_drops(hop);
        self.decided[hop] = self.decided[hop].max(now);
    }

    /// Hop `hop`, for its queue and counters.
    pub fn hop(&self, hop: usize) -> &Direction<impl Packet + use<P>> {
        &self.hops[hop]
    }

    /// The maximum length of the queue of `hop`, including the packet in service.
    pub fn longest(&self, hop: usize) -> Bytes {
        self.longest[hop]
    }

    /// The counters of this chain.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Passes on packets that left the hops before `end` by `until`: to the next hop, or out of the chain.
    fn work_off(&mut self, end: usize, until: Time) {
        let Some(hop) = end.checked_sub(1) else { return };
        // A packet that leaves the link later than this has not passed the hop by `until`.
        let of_link = until - self.hops[hop].min_delay();
        self.work_off(hop, of_link);
        self.decided[hop] = self.decided[hop].max(of_link);
        while let Some((at, routed)) = self.hops[hop].poll_delivery(until) {
            if routed.last == hop {
                self.out.handle_overtaking_entry(at, routed.packet);
            } else {
                self.enter(end, at, routed);
            }
        }
        self.note_drops(hop);
    }

    fn enter(&mut self, hop: usize, at: Time, routed: Routed<P>) -> bool {
        self.decided[hop] = self.decided[hop].max(at);
        let refused = self.hops[hop].handle_arrival(at, routed).err();
        let accepted = refused.is_none();
        self.longest[hop] = self.longest[hop].max(self.hops[hop].link().backlog());
        if let Some(Dropped { packet, reason }) = refused {
            self.drop(Dropped { packet: packet.packet, reason });
        }
        self.note_drops(hop);
        accepted
    }

    fn note_drops(&mut self, hop: usize) {
        while let Some(Dropped { packet, reason }) = self.hops[hop].poll_dropped() {
            self.drop(Dropped { packet: packet.packet, reason });
        }
    }

    fn drop(&mut self, dropped: Dropped<P>) {
        self.counters.dropped += 1;
        self.counters.queued -= 1;
        self.dropped.push_back(dropped);
    }
}
