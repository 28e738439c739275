use sweetspot_units::{Bytes, Duration, Rate, Time, Volume};

use crate::{Counters, Packet, Propagation, Ring};

/// A drop-tail queue, its link of constant rate and the propagation behind it in one. It behaves exactly like [`crate::Link`]
/// with [`crate::DropTail`] followed by [`crate::Pipe`], which a test checks. A packet's exit time is known on arrival, so the
/// packet is stored once and needs no event in between.
///
/// An arrival at the instant of a departure is handled first: it still finds the leaving packet in the buffer. ns-2 does the
/// same, because its arrivals are in the event queue before departures at the same time.
///
/// Departures from the link are recorded only if needed: if the queue may have reached the limit or a new maximum, or if a
/// caller asks.
///
/// **Contract.** `now` never goes backwards. Remove packets that are due with [`Conduit::poll_exit`] before passing in a later
/// time.
#[derive(Debug)]
pub struct Conduit<P> {
    /// The time at which the link will have sent all queued packets.
    free: Time,
    /// The rounding remainder of the busy period's service times, in bit·ns/rate. A packet has left when its last bit has, so
    /// times are rounded up: the remainder starts just below one. A packet that arrives one service time after another still
    /// finds it there.
    remainder: u64,
    /// Precomputed service times of two sizes: data and ACKs.
    known: [ServiceTime; 2],
    rate: u64,
    propagation: Propagation,
    /// Total bytes accepted.
    accepted: u64,
    /// Total bytes recorded as having left the link.
    left: u64,
    /// Accepted packets not yet recorded as sent: the departure time of each, and the cumulative bytes up to it.
    line: Ring<(Time, u64)>,
    /// A queue shorter than this is neither full nor a new maximum.
    harmless: usize,
    waits: Waits,
    received: u64,
    dropped: u64,
    delivered: u64,
    limit: Volume,
    /// Accepted packets that are still inside, with their exit times.
    inside: Ring<(Time, P)>,
}

/// Integrals of the queue over time. The difference of two, divided by the time between them, is a mean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// Packets waiting, times nanoseconds.
    pub packet_time: u128,
    /// Bytes waiting, times nanoseconds.
    pub byte_time: u128,
    /// The largest number of packets that waited at once.
    pub max: u64,
}

/// The link's service time for one size.
#[derive(Debug, Clone, Copy, Default)]
struct ServiceTime {
    size: u64,
    nanos: u64,
    remainder: u64,
}

impl<P: Packet + Copy + Default> Conduit<P> {
    /// An idle conduit.
    pub fn new(rate: Rate, limit: Volume, propagation: impl Into<Propagation>) -> Conduit<P> {
        assert!(rate > Rate::ZERO, "a link needs a rate above zero");
        Conduit {
            free: Time::ZERO,
            remainder: rate.bits_per_second() - 1,
            known: [ServiceTime::default(); 2],
            rate: rate.bits_per_second(),
            propagation: propagation.into(),
            accepted: 0,
            left: 0,
            line: Ring::default(),
            harmless: 0,
            waits: Waits::default(),
            received: 0,
            dropped: 0,
            delivered: 0,
            limit,
            inside: Ring::default(),
        }
    }

    /// A packet arrives at the queue. Returns whether it was accepted.
    #[inline(always)]
    pub fn handle_arrival(&mut self, now: Time, packet: &P) -> bool {
        let Some(out) = self.accept(now, packet.wire_size().get()) else { return false };
        self.inside.push_back((out, *packet));
        true
    }

    /// A packet of `size` arrives; the caller keeps its contents. Returns its exit time, or `None` if it is dropped. The packet
    /// counts as delivered at once.
    #[inline(always)]
    pub fn handle_passage(&mut self, now: Time, size: Bytes) -> Option<Time> {
        let out = self.accept(now, size.get())?;
        self.delivered += 1;
        Some(out)
    }

    /// The exit time of a packet that arrives now, if it fits.
    #[inline(always)]
    fn accept(&mut self, now: Time, size: u64) -> Option<Time> {
        self.received += 1;
        let idle = self.free < now;
        if idle {
            self.line.clear();
            self.left = self.accepted;
            self.remainder = self.rate - 1;
            self.free = now;
        }
        if self.line.len() >= self.harmless && !self.fits(now, size) {
            self.dropped += 1;
            return None;
        }
        if !idle {
            let wait = self.free.since(now).as_nanos();
            self.waits.packet_time += u128::from(wait);
            self.waits.byte_time += u128::from(wait * size);
        }
        let service = self.service(size);
        self.free += service;
        self.accepted += size;
        self.line.push_back((self.free, self.accepted));
        Some(self.propagation.handle_departure(self.free))
    }

    /// Whether a packet fits. Also records a new maximum of waiting packets.
    fn fits(&mut self, now: Time, size: u64) -> bool {
        // A packet that leaves at this instant still occupies the buffer.
        self.advance(|left| left < now);
        let held = self.line.len();
        let fits = match self.limit {
            Volume::Packets(room) => (held as u64) < room,
            Volume::Bytes(room) => self.accepted - self.left + size <= room.get(),
        };
        if fits {
            self.waits.max = self.waits.max.max(held as u64);
        }
        let harmless = match self.limit {
            Volume::Packets(room) => room.min(self.waits.max + 1),
            // The next packet may be larger.
            Volume::Bytes(_) => 0,
        };
        self.harmless = usize::try_from(harmless).unwrap_or(usize::MAX);
        fits
    }

    /// The exit time of the next packet.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.inside.front().map(|(due, _)| *due)
    }

    /// The next packet that is out by `now`, with its exit time.
    #[inline(always)]
    pub fn poll_exit(&mut self, now: Time) -> Option<(Time, P)> {
        if self.poll_timeout()? > now {
            return None;
        }
        self.delivered += 1;
        self.inside.pop_front()
    }

    /// The packet that leaves after `number` others.
    #[inline]
    pub fn upcoming(&self, number: usize) -> Option<&P> {
        self.inside.get(number).map(|(_, packet)| packet)
    }

    /// Packets in the buffer at `now`, including the one in service.
    pub fn backlog_packets(&mut self, now: Time) -> u64 {
        // A packet that leaves now is kept in the line, so that reading the backlog changes nothing.
        self.advance(|left| left < now);
        let leaving = self.line.iter().take_while(|(left, _)| *left <= now).count();
        (self.line.len() - leaving) as u64
    }

    /// Bits sent by the link by `now`, including the packet in service.
    pub fn sent_bits(&self, now: Time) -> u64 {
        let time = u128::from(self.free.since(now).as_nanos());
        let unsent = (time * u128::from(self.rate) / 1_000_000_000) as u64;
        // Service ends at a whole nanosecond: at 3 Gbit/s that leaves more time than bits.
        self.accepted * 8 - unsent.min((self.accepted - self.left) * 8)
    }

    /// The integrals up to `now`.
    pub fn waits(&mut self, now: Time) -> Waits {
        self.advance(|left| left < now);
        let mut waits = self.waits;
        // A packet's whole wait was counted on arrival; the part in the future is subtracted. Its service begins when the
        // packet before it has left.
        for ((start, before), (_, accepted)) in self.line.iter().zip(self.line.iter().skip(1)) {
            let ahead = start.since(now).as_nanos();
            waits.packet_time -= u128::from(ahead);
            waits.byte_time -= u128::from(ahead * (accepted - before));
        }
        waits
    }

    /// Restarts the maximum of waiting packets at `now`.
    pub fn reset_max(&mut self, now: Time) {
        self.waits.max = self.backlog_packets(now).saturating_sub(1);
        self.harmless = 0;
    }

    /// The counters of this conduit. Packets in flight count as queued.
    pub fn counters(&self) -> Counters {
        Counters {
            received: self.received,
            delivered: self.delivered,
            dropped: self.dropped,
            queued: self.inside.len() as u64,
        }
    }

    /// Records packets that left the link at times that are `past`.
    fn advance(&mut self, past: impl Fn(Time) -> bool) {
        while let Some((left, accepted)) = self.line.front()
            && past(*left)
        {
            self.left = *accepted;
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
        let ServiceTime { mut nanos, remainder, .. } = self.known[at];
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
        self.known[0] = ServiceTime { size, nanos: work / self.rate, remainder: work % self.rate };
        0
    }
}
