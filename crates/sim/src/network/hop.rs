use std::collections::VecDeque;

use sweetspot_path::{
    Changes, Conduit, DirectionSpec, Discipline, Line, Link, Policer, Propagation, RandomLoss,
    Variation, Waits,
};
use sweetspot_units::{Bytes, Duration, Probability, Time};

use sweetspot_path::Packet as _;

use super::Packet;

/// One direction of a link between two routers: random loss, policer, queue and transmitter, propagation.
#[derive(Debug)]
pub(crate) struct Hop {
    elements: Elements,
    loss: Option<RandomLoss>,
    policer: Option<Policer>,
    /// Packets lost at random or dropped by the policer.
    lost: u64,
    /// Packets held back from their hosts, with the times at which they leave the hop.
    pub held_back: VecDeque<(Time, Packet)>,
}

// There are few hops, and the usual variant is the large one.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
enum Elements {
    /// Drop-tail: whether a packet is dropped is known on arrival.
    Plain(Conduit<Packet>),
    /// A queue discipline that may drop packets later.
    Managed(Box<Managed>),
}

#[derive(Debug)]
struct Managed {
    link: Link<Packet, Discipline<Packet>>,
    line: Line<Packet>,
    /// Packets that the discipline dropped after it had accepted them.
    victims: Vec<Packet>,
    /// Number of packets accepted and not dropped later.
    accepted: u64,
    accepted_bytes: u64,
    /// Number of packets not accepted, or dropped later.
    refused: u64,
    waits: Waits,
    /// The time up to which `waits` counts.
    seen: Time,
}

/// A hop's counts so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HopTotals {
    pub arrivals: u64,
    pub drops: u64,
    pub departures: u64,
    /// Bits sent by the link, including the packet in service.
    pub sent_bits: u64,
    pub waits: Waits,
}

impl Hop {
    pub(crate) fn new(spec: &DirectionSpec, variation: Variation, packet: Bytes, seed: u64) -> Hop {
        let propagation = Propagation::new(spec, seed);
        let Variation { trace, changes } = variation;
        // If the rate varies, the exit time of a packet is not known on arrival.
        let elements = if spec.is_plain() && changes.is_empty() && trace.is_none() {
            Elements::Plain(Conduit::new(spec.rate, spec.buffer, propagation))
        } else {
            let mut link = spec.link_behind(spec.discipline(packet, seed));
            if let Some(trace) = trace {
                link.follow(trace);
            }
            Elements::Managed(Box::new(Managed {
                link,
                line: Line::new(propagation, Changes::new(changes)),
                victims: Vec::new(),
                accepted: 0,
                accepted_bytes: 0,
                refused: 0,
                waits: Waits::default(),
                seen: Time::ZERO,
            }))
        };
        let loss = (spec.loss > Probability::ZERO).then(|| spec.random_loss(!seed));
        Hop { elements, loss, policer: spec.policer(), lost: 0, held_back: VecDeque::new() }
    }

    /// Whether a packet's fate is known on arrival.
    #[inline]
    pub(crate) fn is_drop_tail(&self) -> bool {
        matches!(self.elements, Elements::Plain(_))
    }

    /// Passes a packet of `size` bytes, which the caller keeps, through a drop-tail hop. Returns the time at which it
    /// leaves, or `None` if it is dropped.
    #[inline(always)]
    pub(crate) fn pass(&mut self, now: Time, size: u16) -> Option<Time> {
        let size = Bytes::new(u64::from(size));
        if self.loses(now, size) {
            return None;
        }
        let Elements::Plain(conduit) = &mut self.elements else { return None };
        conduit.handle_passage(now, size)
    }

    /// Offers a packet to a drop-tail hop; it leaves through [`Hop::exit`]. Returns whether it was accepted.
    #[inline(always)]
    pub(crate) fn enter(&mut self, now: Time, packet: &Packet) -> bool {
        if self.loses(now, packet.wire_size()) {
            return false;
        }
        let Elements::Plain(conduit) = &mut self.elements else { return false };
        conduit.handle_arrival(now, packet)
    }

    /// Offers a packet to a queue that may drop it later. Returns the dropped packet, if any: this one or another.
    pub(crate) fn enter_managed(&mut self, now: Time, packet: Packet) -> Result<(), Packet> {
        if self.loses(now, packet.wire_size()) {
            return Err(packet);
        }
        let Elements::Managed(managed) = &mut self.elements else { return Err(packet) };
        managed.enter(now, packet)
    }

    /// Whether an arriving packet does not reach the queue, because it is lost at random or the policer drops it.
    #[inline]
    fn loses(&mut self, now: Time, size: Bytes) -> bool {
        let lost = self.loss.as_mut().is_some_and(RandomLoss::takes_next)
            || self.policer.as_mut().is_some_and(|policer| !policer.admits(now, size));
        self.lost += u64::from(lost);
        lost
    }

    /// The next packet that has left the hop by `now`.
    #[inline]
    pub(crate) fn exit(&mut self, now: Time) -> Option<Packet> {
        let left = match &mut self.elements {
            Elements::Plain(conduit) => conduit.poll_exit(now),
            Elements::Managed(managed) => managed.exit(now),
        };
        left.map(|(_, packet)| packet)
    }

    /// The packet that leaves the hop after `number` others, if it is known.
    #[inline]
    pub(crate) fn upcoming(&self, number: usize) -> Option<&Packet> {
        match &self.elements {
            Elements::Plain(conduit) => conduit.upcoming(number),
            Elements::Managed(_) => None,
        }
    }

    /// The time of the next call of [`Hop::exit`]: when a packet leaves, or earlier.
    #[inline]
    pub(crate) fn due(&self) -> Option<Time> {
        match &self.elements {
            Elements::Plain(conduit) => conduit.poll_timeout(),
            Elements::Managed(managed) => managed.due(),
        }
    }

    /// The next packet that was accepted and then dropped.
    #[inline]
    pub(crate) fn poll_victim(&mut self) -> Option<Packet> {
        let Elements::Managed(managed) = &mut self.elements else { return None };
        managed.victims.pop()
    }

    /// Packets in the queue at `now`, without the one in service.
    pub(crate) fn waiting(&mut self, now: Time) -> u64 {
        match &mut self.elements {
            Elements::Plain(conduit) => conduit.backlog_packets(now).saturating_sub(1),
            Elements::Managed(managed) => {
                managed.look(now);
                managed.link.waiting_packets()
            }
        }
    }

    /// The counts up to `now`.
    pub(crate) fn totals(&mut self, now: Time) -> HopTotals {
        let mut totals = match &mut self.elements {
            Elements::Plain(conduit) => {
                let held = conduit.backlog_packets(now);
                let counters = conduit.counters();
                HopTotals {
                    arrivals: counters.received,
                    drops: counters.dropped,
                    departures: counters.received - counters.dropped - held,
                    sent_bits: conduit.sent_bits(now),
                    waits: conduit.waits(now),
                }
            }
            Elements::Managed(managed) => managed.totals(now),
        };
        totals.arrivals += self.lost;
        totals.drops += self.lost;
        totals
    }

    /// Restarts the maximum of waiting packets at `now`.
    pub(crate) fn reset_max(&mut self, now: Time) {
        match &mut self.elements {
            Elements::Plain(conduit) => conduit.reset_max(now),
            Elements::Managed(managed) => {
                managed.look(now);
                managed.waits.max = managed.link.waiting_packets();
            }
        }
    }

    pub(crate) fn conserves(&self) -> bool {
        match &self.elements {
            Elements::Plain(conduit) => conduit.counters().conserved(),
            Elements::Managed(managed) => {
                managed.link.counters().conserved() && managed.line.counters().conserved()
            }
        }
    }
}

impl Managed {
    fn enter(&mut self, now: Time, packet: Packet) -> Result<(), Packet> {
        // An arrival at the same instant as a departure is handled first, as in the conduit.
        self.look(now);
        if self.link.poll_timeout().is_none() {
            self.line.apply_changes(now, &mut self.link);
        }
        self.accepted += 1;
        self.accepted_bytes += u64::from(packet.size);
        let result = self.link.handle_arrival(now, packet);
        self.waits.max = self.waits.max.max(self.link.waiting_packets());
        result.inspect_err(|packet| self.refuse(packet))
    }

    /// Changes the count of an accepted packet to a refused one.
    fn refuse(&mut self, packet: &Packet) {
        self.accepted -= 1;
        self.accepted_bytes -= u64::from(packet.size);
        self.refused += 1;
    }

    /// Updates the counts to `now`. A packet that leaves at `now` is still counted as waiting, because an arrival at
    /// `now` is handled first. So reading the counts changes nothing.
    fn look(&mut self, now: Time) {
        self.advance(now, |end| end < now);
    }

    fn totals(&mut self, now: Time) -> HopTotals {
        self.look(now);
        HopTotals {
            arrivals: self.accepted + self.refused,
            drops: self.refused,
            departures: self.accepted - self.link.backlog_packets(),
            sent_bits: self.sent_bits(now),
            waits: self.waits,
        }
    }

    /// Bits sent by the link by `now`, including the packet in service.
    fn sent_bits(&self, now: Time) -> u64 {
        let busy = self.link.poll_timeout().map_or(Duration::ZERO, |end| end.since(now));
        let bits = u128::from(busy.as_nanos()) * u128::from(self.link.rate().bits_per_second());
        let waiting = self.link.waiting_bytes();
        let served = self.link.backlog().get() - waiting;
        // Service ends at a whole nanosecond: at 3 Gbit/s that leaves more time than bits.
        let unsent = ((bits / 1_000_000_000) as u64).min(served * 8);
        (self.accepted_bytes - waiting) * 8 - unsent
    }

    fn exit(&mut self, now: Time) -> Option<(Time, Packet)> {
        self.advance(now, |end| end <= now);
        self.line.poll_exit(now)
    }

    /// The next packet's exit time, or an earlier one: a packet that leaves the link at t comes out at t + delay.
    fn due(&self) -> Option<Time> {
        self.line.poll_timeout(self.link.poll_timeout())
    }

    /// Handles the departures from the link at times that are `past`.
    fn advance(&mut self, now: Time, past: impl Fn(Time) -> bool) {
        while let Some(end) = self.link.poll_timeout().filter(|end| past(*end)) {
            self.observe(end);
            self.line.apply_changes(end, &mut self.link);
            let before = self.victims.len();
            let victims = &mut self.victims;
            let left = self.link.poll_departure(end, &mut |victim| victims.push(victim));
            for number in before..self.victims.len() {
                let victim = self.victims[number];
                self.refuse(&victim);
            }
            if let Some((left, packet)) = left {
                self.line.handle_departure(left, packet);
            }
        }
        self.observe(now);
    }

    fn observe(&mut self, now: Time) {
        let elapsed = u128::from(now.since(self.seen).as_nanos());
        self.waits.packet_time += u128::from(self.link.waiting_packets()) * elapsed;
        self.waits.byte_time += u128::from(self.link.waiting_bytes()) * elapsed;
        self.seen = now;
    }
}
