use sweetspot_path::{DropTail, Link, Pipe, RandomLoss};
use sweetspot_units::{Duration, Time};

use crate::meter::QueueMeter;
use crate::packet::Packet;

/// One direction of a link between two routers: random loss, queue and transmitter, propagation.
#[derive(Debug)]
pub(crate) struct Hop {
    loss: RandomLoss,
    link: Link<Packet, DropTail<Packet>>,
    delay: Duration,
    pipe: Pipe<Packet>,
    /// Whether an event is pending.
    pub pending: bool,
    pub meter: QueueMeter,
}

impl Hop {
    pub(crate) fn new(spec: &sweetspot_scenario::Hop, seed: u64) -> Hop {
        Hop {
            loss: RandomLoss::new(spec.loss, seed),
            link: Link::new(spec.rate, DropTail::new(spec.buffer)),
            delay: spec.delay,
            pipe: Pipe::default(),
            pending: false,
            meter: QueueMeter::default(),
        }
    }

    /// A packet arrives; it is given back if it is dropped.
    #[inline]
    pub(crate) fn enter(&mut self, now: Time, packet: Packet) -> Result<(), Packet> {
        self.advance(now);
        self.meter.count_arrival();
        if self.loss.takes_next() {
            self.meter.count_drop();
            return Err(packet);
        }
        if let Err(packet) = self.link.handle_arrival(now, packet) {
            self.meter.count_drop();
            return Err(packet);
        }
        self.meter.observe(now, self.link.waiting_packets(), self.link.waiting_bytes());
        Ok(())
    }

    /// The next packet that is through by now.
    #[inline]
    pub(crate) fn exit(&mut self, now: Time) -> Option<Packet> {
        if self.pipe.poll_timeout().is_none_or(|due| due > now) {
            self.advance(now);
        }
        self.pipe.poll_exit(now).map(|(_, packet)| packet)
    }

    /// When to look for the next packet: when it is through, or not later.
    #[inline]
    pub(crate) fn due(&self) -> Option<Time> {
        // What leaves the link at t is through at t + delay.
        self.pipe.poll_timeout().or_else(|| self.link.poll_timeout().map(|t| t + self.delay))
    }

    /// Works off what has left the link by now.
    #[inline]
    pub(crate) fn advance(&mut self, now: Time) {
        while let Some((left, packet)) = self.link.poll_departure(now, &mut |_| {}) {
            self.meter.count_departure(packet.size);
            self.meter.observe(left, self.link.waiting_packets(), self.link.waiting_bytes());
            self.pipe.handle_entry(left + self.delay, packet);
        }
    }

    /// Packets that wait, the one being sent not among them.
    pub(crate) fn waiting(&self) -> u64 {
        self.link.waiting_packets()
    }

    pub(crate) fn conserves(&self) -> bool {
        self.link.counters().conserved() && self.pipe.counters().conserved()
    }
}
