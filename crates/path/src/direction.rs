use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::{
    Changes, Counters, DirectionSpec, Discipline, Line, Link, Packet, Policer, Propagation,
    RandomLoss, Variation,
};

/// One direction of a path: random loss, a policer, then the queue and its link, then propagation. Packets that a discipline
/// drops after it accepted them come out of [`Direction::poll_dropped`].
#[derive(Debug)]
pub struct Direction<P> {
    loss: RandomLoss,
    policer: Option<Policer>,
    link: Link<P, Discipline<P>>,
    /// Packets dropped by the discipline at the head of the queue.
    victims: VecDeque<P>,
    line: Line<P>,
    /// Packets lost at random or dropped by the policer.
    lost: u64,
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// The bottleneck's queue dropped it: the buffer was full, or the discipline dropped it.
    Queue,
    /// It was lost at random.
    RandomLoss,
    /// The policer's bucket had too few tokens.
    Policer,
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
    /// An idle direction described by `spec`, for packets of up to `mtu`. `seed` determines loss and jitter.
    pub fn new(spec: &DirectionSpec, mtu: Bytes, seed: u64) -> Direction<P> {
        Direction {
            loss: spec.random_loss(seed),
            policer: spec.policer(),
            link: spec.link_behind(spec.discipline(mtu, seed)),
            victims: VecDeque::new(),
            line: Line::new(Propagation::new(spec, seed), Changes::default()),
            lost: 0,
        }
    }

    /// A packet arrives at the path's entry at `now`. Departures from the link up to `now` are processed first, so the queue
    /// has its state at that time even if the call is late. `now` may be earlier than the time of a previous
    /// [`Direction::poll_delivery`], by up to the propagation delay, because that call processes no more than it must.
    pub fn handle_arrival(&mut self, now: Time, packet: P) -> Result<(), Dropped<P>> {
        self.advance(now);
        if self.loss.takes_next() {
            self.lost += 1;
            return Err(Dropped { packet, reason: DropReason::RandomLoss });
        }
        if let Some(policer) = &mut self.policer
            && !policer.admits(now, packet.wire_size())
        {
            self.lost += 1;
            return Err(Dropped { packet, reason: DropReason::Policer });
        }
        if self.link.poll_timeout().is_none() {
            self.line.apply_changes(now, &mut self.link);
        }
        self.link
            .handle_arrival(now, packet)
            .map_err(|packet| Dropped { packet, reason: DropReason::Queue })
    }

    /// Time of the next call of [`Direction::poll_delivery`]; `None` while the direction is empty.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.line.poll_timeout(self.link.poll_timeout())
    }

    /// The next packet that has left the direction by `now`, with its exit time.
    pub fn poll_delivery(&mut self, now: Time) -> Option<(Time, P)> {
        // A packet that leaves the link later than this cannot be out by `now`.
        self.advance(now - self.min_delay());
        self.line.poll_exit(now)
    }

    /// The next packet that the queue discipline dropped after accepting it.
    pub fn poll_dropped(&mut self) -> Option<Dropped<P>> {
        let packet = self.victims.pop_front()?;
        Some(Dropped { packet, reason: DropReason::Queue })
    }

    /// The shortest propagation delay of a packet that has not left the link.
    pub fn min_delay(&self) -> Duration {
        self.line.min_delay()
    }

    /// Starts `variation`; its time 0 is `start`.
    pub fn vary(&mut self, start: Time, variation: &Variation) {
        if let Some(trace) = &variation.trace {
            self.link.follow(trace.starting_at(start));
        }
        self.line.change(start, &variation.changes);
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

    /// The counters of this direction, including random loss and packets in flight.
    pub fn counters(&self) -> Counters {
        let (link, line) = (self.link.counters(), self.line.counters());
        Counters {
            received: link.received + self.lost,
            delivered: line.delivered,
            dropped: link.dropped + self.lost,
            queued: link.queued + line.queued,
        }
    }

    /// Processes departures from the link up to `now`; [`Direction::link`] then has its backlog at that time. Arrivals
    /// before `now` must have been passed in.
    pub fn advance(&mut self, now: Time) {
        while let Some(end) = self.link.poll_timeout().filter(|end| *end <= now) {
            self.line.apply_changes(end, &mut self.link);
            let victims = &mut self.victims;
            let left = self.link.poll_departure(end, &mut |victim| victims.push_back(victim));
            if let Some((left, packet)) = left {
                self.line.handle_departure(left, packet);
            }
        }
    }
}
