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
    /// What the link has still to send: when each packet will have left it, and its bytes.
    line: VecDeque<(Time, u64)>,
    /// Bytes of them all.
    held: u64,
    /// What was accepted and has not come out, with the time at which it will.
    inside: VecDeque<(Time, P)>,
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
            line: VecDeque::new(),
            held: 0,
            inside: VecDeque::new(),
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
        match self.handle_passage(now, packet.wire_size()) {
            Some(out) => {
                self.keep(out, packet);
                Ok(())
            }
            None => Err(packet),
        }
    }

    /// The same for a packet of `size` that its owner looks after: when it comes out, `None` if
    /// there is no room. It counts as delivered at once.
    #[inline]
    pub fn handle_passage(&mut self, now: Time, size: Bytes) -> Option<Time> {
        self.advance(now);
        self.counters.received += 1;
        let size = size.get();
        let held = self.line.len() as u64;
        let fits = match self.limit {
            Volume::Packets(room) => held < room,
            Volume::Bytes(room) => self.held + size <= room.get(),
        };
        if !fits {
            self.counters.dropped += 1;
            return None;
        }
        self.counters.delivered += 1;
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
        self.line.push_back((self.free, size));
        Some(self.free + self.delay)
    }

    /// Takes the packet over whose passage was just asked for; it comes out at `out`.
    #[inline]
    pub fn keep(&mut self, out: Time, packet: P) {
        self.counters.delivered -= 1;
        self.counters.queued += 1;
        self.inside.push_back((out, packet));
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
        self.counters.delivered += 1;
        self.counters.queued -= 1;
        self.inside.pop_front()
    }

    /// Packets in the buffer at `now`, the one in service among them.
    pub fn backlog_packets(&mut self, now: Time) -> u64 {
        self.advance(now);
        self.line.len() as u64
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
        // It is served when the one before it has left.
        for ((start, _), (_, size)) in self.line.iter().zip(self.line.iter().skip(1)) {
            let ahead = start.since(now).as_nanos();
            waits.packet_time -= u128::from(ahead);
            waits.byte_time -= u128::from(ahead * size);
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
        while let Some((left, size)) = self.line.front()
            && *left <= now
        {
            self.held -= size;
            self.line.pop_front();
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
