use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::{Counters, Packet, Queue, TokenBucket, Trace};

/// A transmitter, which takes packets from its queue and sends them at a constant rate, through a token bucket, or according
/// to a trace.
///
/// A packet leaves when its last bit has been sent. Service times carry their sub-nanosecond remainder through a busy period,
/// so the long-run rate is exact. At most one timer is pending: the end of the packet in service.
#[derive(Debug)]
pub struct Link<P, Q> {
    transmitter: Transmitter,
    queue: Q,
    service: Option<PacketInService<P>>,
    counters: Counters,
}

/// Determines when the packet in service has left.
#[derive(Debug)]
enum Transmitter {
    Constant(ConstantRate),
    Shaper(TokenBucket),
    Trace(Trace),
}

#[derive(Debug)]
struct ConstantRate {
    rate: Rate,
    /// The rounding remainder of the busy period's service times, in bit·ns/rate. It starts just below one, because a packet
    /// has left only when its last bit has.
    remainder: u64,
}

#[derive(Debug)]
struct PacketInService<P> {
    packet: P,
    size: Bytes,
    ends: Time,
}

impl<P: Packet, Q: Queue<P>> Link<P, Q> {
    /// An idle link of `rate` (not zero) behind `queue`.
    pub fn new(rate: Rate, queue: Q) -> Link<P, Q> {
        assert!(rate > Rate::ZERO, "a link needs a rate above zero");
        Link::of(Transmitter::Constant(ConstantRate { rate, remainder: 0 }), queue)
    }

    /// An idle shaper behind `queue`, which is Linux's tbf without a peak rate. Each packet leaves when the bucket holds its
    /// size, so after a pause a burst of up to the bucket's depth leaves at once.
    pub fn shaper(bucket: TokenBucket, queue: Q) -> Link<P, Q> {
        Link::of(Transmitter::Shaper(bucket), queue)
    }

    fn of(transmitter: Transmitter, queue: Q) -> Link<P, Q> {
        Link { transmitter, queue, service: None, counters: Counters::default() }
    }

    /// A packet arrives at the queue. The error is the packet that was dropped.
    pub fn handle_arrival(&mut self, now: Time, packet: P) -> Result<(), P> {
        debug_assert!(
            self.poll_timeout().is_none_or(|due| now <= due),
            "departures up to an arrival must be polled before it"
        );
        self.counters.received += 1;
        let size = packet.wire_size();
        let in_service = self.service.as_ref().map_or(Bytes::ZERO, |s| s.size);
        if let Err(packet) = self.queue.enqueue(now, packet, size, in_service) {
            self.counters.dropped += 1;
            return Err(packet);
        }
        self.counters.queued += 1;
        if self.service.is_none() {
            if let Transmitter::Constant(constant) = &mut self.transmitter {
                constant.remainder = constant.rate.bits_per_second() - 1;
            }
            // A queue may drop at its head only while other packets wait; a sole packet is served.
            self.serve_next(now, &mut |_| {});
        }
        debug_assert!(self.counters.conserved());
        Ok(())
    }

    /// The time at which the packet in service will have left; `None` if the link is idle.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.service.as_ref().map(|s| s.ends)
    }

    /// The next packet that has left by `now`, with its departure time. Packets that the queue drops at its head go to
    /// `dropped`. A late call delays no packet: the next packet's service starts when the previous one ended.
    pub fn poll_departure(&mut self, now: Time, dropped: &mut dyn FnMut(P)) -> Option<(Time, P)> {
        if self.poll_timeout()? > now {
            return None;
        }
        let done = self.service.take()?;
        self.counters.delivered += 1;
        self.counters.queued -= 1;
        self.serve_next(done.ends, dropped);
        debug_assert!(self.counters.conserved());
        Some((done.ends, done.packet))
    }

    /// Changes the rate. The bits of the packet in service that are not yet sent go at the new
    /// rate. A trace continues unchanged.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        assert!(rate > Rate::ZERO, "a link needs a rate above zero");
        let before = self.rate();
        match &mut self.transmitter {
            Transmitter::Constant(constant) => *constant = ConstantRate { rate, remainder: 0 },
            Transmitter::Shaper(bucket) => bucket.set_rate(now, rate),
            Transmitter::Trace(_) => return,
        }
        if let Some(service) = &mut self.service {
            let left = service.ends.since(now);
            service.ends = now + left.scaled(before.as_f64() / rate.as_f64());
        }
    }

    /// Sends according to `trace`, from the next packet on.
    pub fn follow(&mut self, trace: impl Into<Trace>) {
        self.transmitter = Transmitter::Trace(trace.into());
    }

    /// The current rate; a trace's mean rate.
    #[inline]
    pub fn rate(&self) -> Rate {
        match &self.transmitter {
            Transmitter::Constant(constant) => constant.rate,
            Transmitter::Shaper(bucket) => bucket.rate(),
            Transmitter::Trace(trace) => trace.mean_rate(),
        }
    }

    /// The queue.
    pub fn queue(&self) -> &Q {
        &self.queue
    }

    /// Bytes in the buffer, including the packet in service.
    pub fn backlog(&self) -> Bytes {
        self.queue.bytes() + self.service.as_ref().map_or(Bytes::ZERO, |s| s.size)
    }

    /// Packets in the buffer, including the one in service.
    pub fn backlog_packets(&self) -> u64 {
        self.queue.packets() + u64::from(self.service.is_some())
    }

    /// Packets waiting, without the one in service.
    #[inline]
    pub fn waiting_packets(&self) -> u64 {
        self.queue.packets()
    }

    /// Bytes waiting, without the packet in service.
    #[inline]
    pub fn waiting_bytes(&self) -> u64 {
        self.queue.bytes().get()
    }

    /// The counters of this link.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn serve_next(&mut self, start: Time, dropped: &mut dyn FnMut(P)) {
        let mut victims = 0;
        let next = self.queue.dequeue(start, &mut |packet| {
            victims += 1;
            dropped(packet);
        });
        self.counters.dropped += victims;
        self.counters.queued -= victims;
        self.service = next.map(|(packet, size)| {
            let ends = self.transmitter.handle_service(start, size);
            PacketInService { packet, size, ends }
        });
    }
}

impl Transmitter {
    /// The departure time of a packet of `size`, if its service starts at `start`.
    #[inline]
    fn handle_service(&mut self, start: Time, size: Bytes) -> Time {
        match self {
            Transmitter::Constant(constant) => start + constant.service_time(size),
            Transmitter::Shaper(bucket) => {
                let ends = bucket.holds_at(start, size);
                bucket.take(start, size);
                ends
            }
            Transmitter::Trace(trace) => trace.handle_service(start, size),
        }
    }
}

impl ConstantRate {
    #[inline]
    fn service_time(&mut self, size: Bytes) -> Duration {
        // size * 8 bit * 10^9 ns/s fits 64 bits up to 2 GB.
        let work = size.get() * 8_000_000_000 + self.remainder;
        let rate = self.rate.bits_per_second();
        self.remainder = work % rate;
        Duration::from_nanos(work / rate)
    }
}
