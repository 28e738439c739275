use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time, Volume};

use crate::{Counters, Packet};

/// A drop-tail queue, its link of constant rate, and the propagation behind it, in one: the same
/// as [`crate::Link`] with [`crate::DropTail`] followed by [`crate::Pipe`], to the nanosecond and
/// to the packet (a test says so). Since everything about a packet is known when it arrives, it
/// is stored once and costs no event of its own between arrival and exit.
///
/// **Contract.** `now` never goes backwards. Packets that are due must be taken out with
/// [`Conduit::poll_exit`] before time goes on past them.
#[derive(Debug)]
pub struct Conduit<P> {
    rate: u64,
    delay: Duration,
    limit: Volume,
    /// What was accepted and has not come out, with the time at which it will.
    inside: VecDeque<(Time, P)>,
    /// How many of them, from the front, have left the link.
    flying: usize,
    /// Bytes of the others.
    held: u64,
    /// When the link will have sent all it holds.
    free: Time,
    /// What whole nanoseconds took from the busy period's service times, in bit·ns/rate.
    remainder: u64,
    /// Service times of two sizes, data's and ACKs', that were computed already.
    known: [Service; 2],
    counters: Counters,
    waits: Waits,
}

/// What waiting added up to: sums whose differences, divided by time, are averages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// Packets waiting times nanoseconds.
    pub packet_time: u128,
    /// Bytes waiting times nanoseconds.
    pub byte_time: u128,
    /// The most packets that waited at once.
    pub most: u64,
}

/// How long the link takes for one size.
#[derive(Debug, Clone, Copy, Default)]
struct Service {
    size: u64,
    nanos: u64,
    remainder: u64,
}

impl<P: Packet> Conduit<P> {
    /// An idle one.
    pub fn new(rate: Rate, limit: Volume, delay: Duration) -> Conduit<P> {
        assert!(rate > Rate::ZERO, "a link needs a rate above zero");
        Conduit {
            rate: rate.bits_per_second(),
            delay,
            limit,
            inside: VecDeque::new(),
            flying: 0,
            held: 0,
            free: Time::ZERO,
            remainder: 0,
            known: [Service::default(); 2],
            counters: Counters::default(),
            waits: Waits::default(),
        }
    }

    /// A packet arrives at the queue. It is given back if there is no room.
    #[inline]
    pub fn handle_arrival(&mut self, now: Time, packet: P) -> Result<(), P> {
        self.advance(now);
        self.counters.received += 1;
        let size = packet.wire_size().get();
        let held = (self.inside.len() - self.flying) as u64;
        let fits = match self.limit {
            Volume::Packets(room) => held < room,
            Volume::Bytes(room) => self.held + size <= room.get(),
        };
        if !fits {
            self.counters.dropped += 1;
            return Err(packet);
        }
        self.counters.queued += 1;
        if held == 0 {
            self.remainder = 0;
            self.free = now;
        } else {
            let wait = self.free.since(now).as_nanos();
            self.waits.packet_time += u128::from(wait);
            self.waits.byte_time += u128::from(wait * size);
            self.waits.most = self.waits.most.max(held);
        }
        let service = self.service(size);
        self.free += service;
        self.held += size;
        self.inside.push_back((self.free + self.delay, packet));
        Ok(())
    }

    /// When the next packet comes out.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.inside.front().map(|(due, _)| *due)
    }

    /// The next packet that is out by `now`, with the time at which it was due.
    #[inline]
    pub fn poll_exit(&mut self, now: Time) -> Option<(Time, P)> {
        if self.poll_timeout()? > now {
            return None;
        }
        if self.flying == 0 {
            self.advance(now);
        }
        self.flying -= 1;
        self.counters.delivered += 1;
        self.counters.queued -= 1;
        self.inside.pop_front()
    }

    /// Packets in the buffer at `now`, the one in service among them.
    pub fn backlog_packets(&mut self, now: Time) -> u64 {
        self.advance(now);
        (self.inside.len() - self.flying) as u64
    }

    /// Bytes in the buffer at `now`, the packet in service among them.
    pub fn backlog(&mut self, now: Time) -> Bytes {
        self.advance(now);
        Bytes::new(self.held)
    }

    /// What waiting added up to by `now`.
    pub fn waits(&mut self, now: Time) -> Waits {
        self.advance(now);
        let mut waits = self.waits;
        // A packet's whole wait was booked when it arrived; what lies ahead is not yet waited.
        let mut starts = self.inside.range(self.flying..).map(|(due, _)| *due - self.delay);
        let mut start = starts.next();
        for (_, packet) in self.inside.range(self.flying..).skip(1) {
            let ahead = start.map_or(0, |start| start.since(now).as_nanos());
            waits.packet_time -= u128::from(ahead);
            waits.byte_time -= u128::from(ahead * packet.wire_size().get());
            start = starts.next();
        }
        waits
    }

    /// Forgets how many waited at most.
    pub fn reset_most(&mut self) {
        self.waits.most = 0;
    }

    /// What this conduit did so far; what flies counts as queued.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Notes what has left the link by `now`.
    #[inline]
    fn advance(&mut self, now: Time) {
        while let Some((due, packet)) = self.inside.get(self.flying) {
            if *due - self.delay > now {
                break;
            }
            self.held -= packet.wire_size().get();
            self.flying += 1;
        }
    }

    /// Serialisation time, with the busy period's remainder carried on.
    #[inline]
    fn service(&mut self, size: u64) -> Duration {
        let at = match &self.known {
            [first, _] if first.size == size => 0,
            [_, second] if second.size == size => 1,
            _ => self.learn(size),
        };
        let Service { mut nanos, remainder, .. } = self.known[at];
        self.remainder += remainder;
        if self.remainder >= self.rate {
            self.remainder -= self.rate;
            nanos += 1;
        }
        Duration::from_nanos(nanos)
    }

    #[cold]
    fn learn(&mut self, size: u64) -> usize {
        // size * 8 bit * 10^9 ns/s fits 64 bits up to 2 GB.
        let work = size * 8_000_000_000;
        self.known.swap(0, 1);
        self.known[0] = Service { size, nanos: work / self.rate, remainder: work % self.rate };
        0
    }
}
