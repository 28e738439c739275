//! The network: hops between routers, and the links between hosts and routers.
//!
//! It carries packets and knows nothing about flows. The caller names the hop for a packet, and the network returns whether
//! and when the packet leaves it.

mod hop;
mod host_links;
mod packet;
mod slab;
mod transit;
mod wire_time;

pub(crate) use hop::{Hop, HopTotals};
pub(crate) use host_links::{Downlink, Uplink};
pub(crate) use packet::{
    AckHeader, AnswerHeader, BARE_SEGMENT, DataHeader, Ecn, Header, Packet, PacketKind,
    ProbeHeader, RequestHeader, TrainHeader, WindowUpdateHeader,
};
pub(crate) use slab::Slab;
pub(crate) use transit::{Arrived, Transit};
pub(crate) use wire_time::WireTimes;

use sweetspot_sizing::SenderReport;
use sweetspot_tcp::SackBlocks;
use sweetspot_units::{Deadline, Duration, Rate, Time};

use crate::access_link::AccessLink;
use crate::event_queue::EventQueue;
use crate::scheduler::{Key, Scheduler};

/// The direction in which a packet crosses the hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The direction of the measured transfers' data.
    Forward = 0,
    /// The direction of their ACKs.
    Backward = 1,
}

/// Hops, the links of hosts, and the packets in flight on them.
pub(crate) struct Network {
    /// Forward hops, then the same number of backward ones.
    hops: Vec<Hop>,
    next_events: Vec<NextEvent>,
    /// Time of the earliest of those events, and its hop.
    next_hop: (Deadline, usize),
    /// For each hop, the number of departing packets before the next prefetch.
    unread: Vec<usize>,
    /// Packets that leave the routers at this time or later are held back.
    horizon: Deadline,
    /// Packets in flight on access links.
    pub transit: Transit,
    /// Input links, which several servers share.
    inputs: Vec<InputLink>,
    pub wire_times: WireTimes,
    pub sacks: Slab<SackBlocks>,
    pub reports: Slab<SenderReport>,
}

#[derive(Debug, Clone, Copy)]
struct NextEvent {
    due: Deadline,
    /// Number of events scheduled before it, if that breaks ties.
    declared: u32,
}

/// A link between servers and the first router, with an unlimited buffer.
#[derive(Debug)]
struct InputLink {
    uplink: Uplink,
    rate: Rate,
}

/// The result for a packet that passes a drop-tail hop just before its host.
pub(crate) enum HopResult {
    Dropped,
    /// It leaves after the horizon: [`Network::poll_held_back`] returns it.
    HeldBack,
    Leaves(Time),
}

/// The batch size for prefetching flows: at most the number of reads that a core keeps in flight.
const READ_AHEAD_BATCH: usize = 16;

impl Network {
    /// A network without hops and input links. Most packets are data of `packet` bytes, or ACKs of `ack` bytes.
    pub(crate) fn new(access_rate: Rate, packet: u16, ack: u16) -> Network {
        Network {
            hops: Vec::new(),
            next_events: Vec::new(),
            next_hop: (Deadline::NEVER, 0),
            unread: Vec::new(),
            horizon: Deadline::NEVER,
            transit: Transit::default(),
            inputs: Vec::new(),
            wire_times: WireTimes::new(access_rate, packet, ack),
            sacks: Slab::default(),
            reports: Slab::default(),
        }
    }

    /// Adds a hop after all others; forward hops come first.
    pub(crate) fn push_hop(&mut self, hop: Hop) {
        self.hops.push(hop);
        self.next_events.push(NextEvent { due: Deadline::NEVER, declared: 0 });
        self.unread.push(1);
    }

    /// Adds an input link and returns its index.
    pub(crate) fn push_input(&mut self, rate: Rate) -> u32 {
        self.inputs.push(InputLink { uplink: Uplink::default(), rate });
        self.inputs.len() as u32 - 1
    }

    #[inline]
    pub(crate) fn hops_each_way(&self) -> usize {
        self.hops.len() / 2
    }

    /// The index of hop `hop` among the hops of both directions.
    #[inline(always)]
    pub(crate) fn index(&self, direction: Direction, hop: u16) -> usize {
        direction as usize * self.hops_each_way() + usize::from(hop)
    }

    /// The hop that has this number in its own direction.
    #[inline(always)]
    pub(crate) fn hop_at(&self, direction: Direction, index: usize) -> u16 {
        (index - direction as usize * self.hops_each_way()) as u16
    }

    /// The hop with this index among the hops of both directions.
    #[inline]
    pub(crate) fn hop(&mut self, index: usize) -> &mut Hop {
        &mut self.hops[index]
    }

    /// All hops, forward ones first.
    pub(crate) fn hops(&mut self) -> impl Iterator<Item = &mut Hop> {
        self.hops.iter_mut()
    }

    /// Whether input links feed the first hop.
    #[inline]
    pub(crate) fn has_inputs(&self) -> bool {
        !self.inputs.is_empty()
    }

    /// Time of the earliest hop event, and its hop.
    #[inline(always)]
    pub(crate) fn next_hop(&self) -> (Deadline, usize) {
        self.next_hop
    }

    /// The key of a hop's next event.
    #[cold]
    pub(crate) fn hop_key<S>(&self, queue: &EventQueue<S>, index: usize) -> Key {
        let Some(NextEvent { due, declared }) = self.next_events.get(index) else {
            return Key::NEVER;
        };
        due.time().map_or(Key::NEVER, |at| queue.hop_key(at, *declared, index as u32))
    }

    /// Passes a packet through a drop-tail hop, if only the packet's host is behind the hop.
    #[inline(always)]
    pub(crate) fn pass(&mut self, now: Time, index: usize, packet: &Packet) -> HopResult {
        let Some(out) = self.hops[index].pass(now, packet.size) else { return HopResult::Dropped };
        if !self.horizon.has_passed(out) {
            return HopResult::Leaves(out);
        }
        self.hops[index].held_back.push_back((out, *packet));
        HopResult::HeldBack
    }

    /// Puts a packet into a drop-tail hop; [`Network::leave_hop`] returns it later. Returns false if the queue is full.
    #[inline(always)]
    pub(crate) fn enter<S: Scheduler>(
        &mut self,
        queue: &mut EventQueue<S>,
        index: usize,
        packet: &Packet,
    ) -> bool {
        if !self.hops[index].enter(queue.now(), packet) {
            return false;
        }
        if !self.next_events[index].due.is_set() {
            self.update_next_event(queue, index);
        }
        true
    }

    /// Offers a packet to a hop with a queue that may drop it later. Returns the dropped packet, if any: this one or another.
    #[inline(never)]
    pub(crate) fn enter_managed<S: Scheduler>(
        &mut self,
        queue: &mut EventQueue<S>,
        index: usize,
        packet: &Packet,
    ) -> Option<Packet> {
        let result = self.hops[index].enter_managed(queue.now(), *packet);
        if !self.next_events[index].due.is_set() {
            self.update_next_event(queue, index);
        }
        result.err()
    }

    /// Handles a hop's event: returns the packet that leaves, if there is one.
    #[inline(always)]
    pub(crate) fn leave_hop<S: Scheduler>(
        &mut self,
        queue: &mut EventQueue<S>,
        index: usize,
    ) -> Option<Packet> {
        let left = self.hops[index].exit(queue.now());
        self.update_next_event(queue, index);
        left
    }

    /// Updates the time of a hop's next event, and the hop with the earliest one.
    #[inline]
    fn update_next_event<S: Scheduler>(&mut self, queue: &mut EventQueue<S>, index: usize) {
        let Some(due) = self.hops[index].due() else {
            self.next_events[index].due = Deadline::NEVER;
            return self.choose_hop(queue);
        };
        let due = Deadline::at(due.max(queue.now()));
        self.next_events[index] = NextEvent { due, declared: queue.declare() };
        self.choose_hop(queue);
    }

    #[inline(always)]
    fn choose_hop<S>(&mut self, queue: &EventQueue<S>) {
        let mut next = (Deadline::NEVER, 0);
        for (index, NextEvent { due, .. }) in self.next_events.iter().enumerate() {
            let ties = *due == next.0 && due.is_set();
            if *due < next.0 || (ties && self.hop_key(queue, index) < self.hop_key(queue, next.1)) {
                next = (*due, index);
            }
        }
        self.next_hop = next;
    }

    /// From now on, holds back packets that leave the routers at `horizon` or later.
    pub(crate) fn set_horizon(&mut self, horizon: Deadline) {
        self.horizon = horizon;
    }

    /// The next packet held back at a hop that now leaves before the horizon.
    pub(crate) fn poll_held_back(&mut self, index: usize) -> Option<(Time, Packet)> {
        let (out, _) = self.hops[index].held_back.front()?;
        if self.horizon.has_passed(*out) {
            return None;
        }
        self.hops[index].held_back.pop_front()
    }

    /// Notes that a packet has left a hop. Returns whether to prefetch the flows of the packets behind it.
    #[inline(never)]
    pub(crate) fn wants_read_ahead(&mut self, index: usize) -> bool {
        self.unread[index] -= 1;
        if self.unread[index] > 0 {
            return false;
        }
        self.unread[index] = READ_AHEAD_BATCH;
        true
    }

    /// The batch of packets that leave a hop after the next batch, if they are known.
    pub(crate) fn upcoming(&self, index: usize) -> impl Iterator<Item = &Packet> {
        let hop = &self.hops[index];
        (READ_AHEAD_BATCH..2 * READ_AHEAD_BATCH).map_while(|number| hop.upcoming(number))
    }

    /// Sends a packet over a host's uplink at `at`. It reaches its router `delay` after the link has sent it.
    #[inline(always)]
    pub(crate) fn send<S: Scheduler>(
        &mut self,
        queue: &mut EventQueue<S>,
        (uplink, link): (&mut Uplink, AccessLink),
        (at, delay): (Time, Duration),
        packet: Packet,
    ) {
        let due = uplink.send(at, self.wire_times.of(packet.size), delay);
        if let Some(place) = self.transit.put(queue.now(), (uplink, link), due, packet) {
            queue.schedule_arrival(due, place, link);
        }
    }

    /// Sends a packet over an input link.
    pub(crate) fn enter_input<S: Scheduler>(
        &mut self,
        queue: &mut EventQueue<S>,
        index: u32,
        packet: &Packet,
    ) {
        let input = &mut self.inputs[index as usize];
        let wire_time = wire_time::at(input.rate, packet.size);
        let due = input.uplink.send(queue.now(), wire_time, Duration::ZERO);
        let link = AccessLink::input(index);
        let uplink = (&mut input.uplink, link);
        if let Some(place) = self.transit.put(queue.now(), uplink, due, *packet) {
            queue.schedule_arrival(due, place, link);
        }
    }

    /// Asserts that every element counts correctly: received = delivered + dropped + held.
    pub(crate) fn assert_conservation(&self) {
        assert!(self.hops.iter().all(Hop::conserves), "a hop lost count");
    }
}
