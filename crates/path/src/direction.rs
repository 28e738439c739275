use std::collections::VecDeque;

use sweetspot_units::{Bytes, Rate, Time};

use crate::{
    Codel, CodelConfig, Counters, DirectionSpec, Discipline, DropTail, FqCodel, FqCodelConfig,
    Link, Packet, Pipe, Propagation, QueueDiscipline, RandomLoss, Red, RedConfig,
};

/// One direction of a path: random loss, then the queue and its link, then propagation. What a discipline drops after
/// it had let it in comes out of [`Direction::poll_dropped`].
#[derive(Debug)]
pub struct Direction<P> {
    loss: RandomLoss,
    link: Link<P, Discipline<P>>,
    /// What the discipline dropped at the head of the queue.
    victims: VecDeque<P>,
    propagation: Propagation,
    pipe: Pipe<P>,
    lost: u64,
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// The bottleneck's queue did not keep it: there was no room, or its discipline dropped it.
    Queue,
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
    /// An idle direction as `spec` describes it, for packets of up to `mtu`. `seed` decides loss and jitter.
    pub fn new(spec: &DirectionSpec, mtu: Bytes, seed: u64) -> Direction<P> {
        Direction {
            loss: RandomLoss::new(spec.loss, seed),
            link: Link::new(spec.rate, discipline(spec, mtu, seed)),
            victims: VecDeque::new(),
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
            .map_err(|packet| Dropped { packet, reason: DropReason::Queue })
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

    /// The next packet that the queue discipline dropped although it had been let in.
    pub fn poll_dropped(&mut self) -> Option<Dropped<P>> {
        let packet = self.victims.pop_front()?;
        Some(Dropped { packet, reason: DropReason::Queue })
    }

    /// Changes the bottleneck's rate from `now` on.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.advance(now);
        self.link.set_rate(now, rate);
    }

    /// The queue and link, for their backlog and counters.
    pub fn link(&self) -> &Link<P, Discipline<P>> {
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
        let victims = &mut self.victims;
        while let Some((left, packet)) =
            self.link.poll_departure(now, &mut |victim| victims.push_back(victim))
        {
            self.pipe.handle_entry(self.propagation.handle_departure(left), packet);
        }
    }
}

/// The queue that `spec` names.
fn discipline<P>(spec: &DirectionSpec, mtu: Bytes, seed: u64) -> Discipline<P> {
    match spec.queue {
        QueueDiscipline::DropTail => Discipline::DropTail(DropTail::new(spec.buffer)),
        QueueDiscipline::Red => {
            let config = RedConfig::new(spec.buffer, mtu, mtu / spec.rate);
            Discipline::Red(Box::new(Red::new(config, seed)))
        }
        QueueDiscipline::Codel => {
            Discipline::Codel(Box::new(Codel::new(spec.buffer, CodelConfig::default())))
        }
        QueueDiscipline::FqCodel => {
            let config = FqCodelConfig::new(spec.buffer.in_packets(mtu));
            Discipline::FqCodel(Box::new(FqCodel::new(config, seed)))
        }
    }
}
