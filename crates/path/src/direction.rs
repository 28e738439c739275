use sweetspot_units::{Rate, Time};

use crate::{Counters, DirectionSpec, DropTail, Link, Packet, Pipe, Propagation, RandomLoss};

/// One direction of a path: random loss, then the queue and its link, then propagation.
#[derive(Debug)]
pub struct Direction<P> {
    loss: RandomLoss,
    link: Link<P, DropTail<P>>,
    propagation: Propagation,
    pipe: Pipe<P>,
    lost: u64,
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// The bottleneck's buffer was full.
    BufferFull,
    /// It was lost at random.
    RandomLoss,
}

/// A dropped packet and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped<P> {
    /// The packet.
    pub packet: P,
    /// The reason.
    pub reason: DropReason,
}

impl<P: Packet> Direction<P> {
    /// An idle direction as `spec` describes it. `seed` decides loss and jitter.
    pub fn new(spec: &DirectionSpec, seed: u64) -> Direction<P> {
        Direction {
            loss: RandomLoss::new(spec.loss, seed),
            link: Link::new(spec.rate, DropTail::new(spec.buffer)),
            propagation: Propagation::new(spec.delay, spec.jitter, seed),
            pipe: Pipe::default(),
            lost: 0,
        }
    }

    /// A packet arrives at the path's entry at `now`. Departures from the link up to `now` are
    /// worked off first, so that the queue is judged as it stood then, however late the call:
    /// `now` may lie before the time of an earlier [`Direction::poll_delivery`], by up to the
    /// propagation delay, because that call looks no further than it must.
    pub fn handle_arrival(&mut self, now: Time, packet: P) -> Result<(), Dropped<P>> {
        self.advance(now);
        if self.loss.takes_next() {
            self.lost += 1;
            return Err(Dropped { packet, reason: DropReason::RandomLoss });
        }
        self.link
            .handle_arrival(now, packet)
            .map_err(|packet| Dropped { packet, reason: DropReason::BufferFull })
    }

    /// When to call [`Direction::poll_delivery`] next; `None` while no packet is inside.
    pub fn poll_timeout(&self) -> Option<Time> {
        match (self.link.poll_timeout(), self.pipe.poll_timeout()) {
            // What leaves the link at t comes out of the pipe at t + delay at the earliest.
            (Some(leaves), None) => Some(leaves + self.propagation.delay()),
            (_, due) => due,
        }
    }

    /// The next packet that is through by `now`, with the time at which it was due.
    pub fn poll_delivery(&mut self, now: Time) -> Option<(Time, P)> {
        // What leaves the link later than this cannot be through by `now`.
        self.advance(now - self.propagation.delay());
        self.pipe.poll_exit(now)
    }

    /// Changes the bottleneck's rate from `now` on.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.advance(now);
        self.link.set_rate(now, rate);
    }

    /// The queue and link, for their backlog and counters.
    pub fn link(&self) -> &Link<P, DropTail<P>> {
        &self.link
    }

    /// What this direction did so far, random loss and packets in flight among it.
    pub fn counters(&self) -> Counters {
        let (link, pipe) = (self.link.counters(), self.pipe.counters());
        Counters {
            received: link.received + self.lost,
            delivered: pipe.delivered,
            dropped: link.dropped + self.lost,
            queued: link.queued + pipe.queued,
        }
    }

    /// Works off what has left the link by `now`, so that [`Direction::link`] shows its backlog
    /// as it stands then. Arrivals before `now` must have been handed in.
    pub fn advance(&mut self, now: Time) {
        while let Some((left, packet)) = self.link.poll_departure(now, &mut |_| {}) {
            self.pipe.handle_entry(self.propagation.handle_departure(left), packet);
        }
    }
}
