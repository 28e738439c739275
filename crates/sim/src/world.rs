use sweetspot_path::Random;
use sweetspot_scenario::Ties;
use sweetspot_tcp::{Acknowledgement, Arrival, Receiver, SackBlocks, Sender};
use sweetspot_units::{Duration, Time};

use crate::access::Access;
use crate::event::Event;
use crate::flow::{Flow, Way};
use crate::group::Group;
use crate::hop::Hop;
use crate::packet::{BARE, Kind, Packet};
use crate::random;
use crate::scheduler::Scheduler;
use crate::shelf::Shelf;
use crate::source::Source;
use crate::target::Target;

/// Everything that moves, and the clock that moves it.
///
/// Senders, receivers and flows lie in arrays of their own under the same index, because an
/// event touches one of the three far more often than all. Targets are the first flows.
pub(crate) struct World<S> {
    pub now: Time,
    pub agenda: S,
    pub events: u64,
    order: Order,
    pub seed: u64,
    pub access: Vec<Access>,
    /// Whether what comes out of an access link is at a router (or at a host).
    pub to_router: Vec<bool>,
    /// Forward hops, then as many backward ones.
    pub hops: Vec<Hop>,
    pub flows: Vec<Flow>,
    pub senders: Vec<Sender>,
    pub receivers: Vec<Receiver>,
    pub groups: Vec<Group>,
    pub sources: Vec<Source>,
    pub targets: Vec<Target>,
    sacks: Shelf<SackBlocks>,
    /// Bytes of a data packet on the wire.
    pub packet: u16,
}

/// Who goes first among simultaneous events.
pub(crate) enum Order {
    Seeded(Random),
    Declared(u32),
}

impl Order {
    pub(crate) fn new(ties: Ties, seed: u64) -> Order {
        match ties {
            Ties::Seeded => Order::Seeded(random::stream(seed, 0, 0, 0)),
            Ties::Declared => Order::Declared(0),
        }
    }

    #[inline]
    fn next(&mut self) -> u32 {
        match self {
            Order::Seeded(random) => random.bits() as u32,
            Order::Declared(count) => {
                *count = count.wrapping_add(1);
                *count
            }
        }
    }
}

impl<S: Scheduler> World<S> {
    pub(crate) fn new(agenda: S, ties: Ties, seed: u64, packet: u16) -> World<S> {
        World {
            now: Time::ZERO,
            agenda,
            events: 0,
            order: Order::new(ties, seed),
            seed,
            access: Vec::new(),
            to_router: Vec::new(),
            hops: Vec::new(),
            flows: Vec::new(),
            senders: Vec::new(),
            receivers: Vec::new(),
            groups: Vec::new(),
            sources: Vec::new(),
            targets: Vec::new(),
            sacks: Shelf::default(),
            packet,
        }
    }

    /// Asks for `event` at `at`.
    #[inline]
    pub(crate) fn schedule(&mut self, at: Time, event: Event) {
        let order = self.order.next();
        self.agenda.push(at, order, event.pack());
    }

    /// Works events off until an entry of the agenda comes up, which is given back.
    pub(crate) fn run(&mut self) -> Option<u32> {
        while let Some((at, event)) = self.agenda.pop() {
            debug_assert!(at >= self.now, "time runs backwards");
            self.now = at;
            self.events += 1;
            match Event::unpack(event) {
                Event::Access(i) => self.leave_access(i),
                Event::Hop(i) => self.leave_hop(i),
                Event::Flow(i) => self.wake_flow(i),
                Event::Source(i) => self.send_datagram(i),
                Event::Agenda(i) => return Some(i),
            }
        }
        None
    }

    #[inline]
    fn leave_access(&mut self, index: u32) {
        let line = &mut self.access[index as usize];
        let Some(packet) = line.exit(self.now) else { return };
        if let Some(due) = line.due() {
            self.schedule(due, Event::Access(index));
        }
        if self.to_router[index as usize] {
            self.enter_routers(packet);
        } else {
            self.arrive(packet);
        }
    }

    #[inline]
    fn enter_access(&mut self, index: u32, packet: Packet) {
        if let Some(due) = self.access[index as usize].enter(self.now, packet) {
            self.schedule(due, Event::Access(index));
        }
    }

    #[inline]
    fn way(flow: &Flow, packet: &Packet) -> Way {
        match packet.kind {
            Kind::Data | Kind::Datagram => flow.way,
            Kind::Ack => flow.way.other(),
        }
    }

    #[inline]
    fn enter_routers(&mut self, packet: Packet) {
        let flow = &self.flows[packet.flow as usize];
        let way = Self::way(flow, &packet);
        let hop = flow.entry(way);
        self.enter_hop(way, hop, packet);
    }

    #[inline]
    fn enter_hop(&mut self, way: Way, hop: u16, packet: Packet) {
        let index = way as usize * (self.hops.len() / 2) + usize::from(hop);
        let line = &mut self.hops[index];
        match line.enter(self.now, packet) {
            Ok(()) => {
                if !line.pending
                    && let Some(due) = line.due()
                {
                    line.pending = true;
                    self.schedule(due, Event::Hop(index as u32));
                }
            }
            Err(packet) => self.drop_packet(packet),
        }
    }

    #[cold]
    fn drop_packet(&mut self, packet: Packet) {
        self.sacks.discard(packet.sack);
        if packet.kind != Kind::Ack {
            let flow = &mut self.flows[packet.flow as usize];
            flow.dropped += 1;
            self.groups[flow.group as usize].totals.dropped += 1;
        }
    }

    #[inline]
    fn leave_hop(&mut self, index: u32) {
        let line = &mut self.hops[index as usize];
        let left = line.exit(self.now);
        match line.due() {
            Some(due) => self.schedule(due, Event::Hop(index)),
            None => line.pending = false,
        }
        let Some(packet) = left else { return };
        let flow = &self.flows[packet.flow as usize];
        let way = Self::way(flow, &packet);
        let backward = way as usize * (self.hops.len() / 2);
        if let Some(next) = flow.after(way, (index as usize - backward) as u16) {
            return self.enter_hop(way, next, packet);
        }
        // Out of the routers: the source's access link for ACKs, the sink's for data.
        match packet.kind {
            Kind::Ack => {
                let back = flow.back;
                self.enter_access(back, packet);
            }
            _ => match flow.far_out {
                Some(line) => self.enter_access(line, packet),
                None => self.arrive(packet),
            },
        }
    }

    /// A packet is at its host.
    #[inline]
    fn arrive(&mut self, packet: Packet) {
        let index = packet.flow as usize;
        if packet.kind == Kind::Datagram {
            let group = self.flows[index].group;
            self.groups[group as usize].totals.delivered += 1;
            return;
        }
        if packet.epoch != self.flows[index].epoch() {
            self.sacks.discard(packet.sack);
            return;
        }
        if packet.kind == Kind::Data {
            let arrival = Arrival {
                number: packet.number,
                sent: packet.sent,
                congested: false,
                window_reduced: false,
            };
            let received = self.receivers[index].handle_data(self.now, &arrival);
            match received.ack {
                Some(ack) => self.send_ack(packet.flow, &ack),
                None => self.reschedule(packet.flow),
            }
        } else {
            let ack = Acknowledgement {
                next: packet.number,
                window: packet.window,
                echo: packet.sent,
                congestion_echo: false,
                sack: self.sacks.take(packet.sack).unwrap_or(SackBlocks::NONE),
            };
            self.senders[index].handle_ack(self.now, &ack);
            if index < self.targets.len() {
                self.targets[index].rtt.add(self.now.since(ack.echo));
            }
            self.pump(packet.flow);
        }
    }

    fn send_ack(&mut self, flow: u32, ack: &Acknowledgement) {
        let sack = if ack.sack.is_empty() { 0 } else { self.sacks.put(ack.sack) };
        let route = &self.flows[flow as usize];
        let packet = Packet {
            flow,
            size: BARE,
            kind: Kind::Ack,
            epoch: route.epoch(),
            number: ack.next,
            sent: ack.echo,
            window: ack.window,
            sack,
        };
        match route.far_back {
            Some(line) => self.enter_access(line, packet),
            None => {
                let way = route.way.other();
                let hop = route.entry(way);
                self.enter_hop(way, hop, packet);
            }
        }
    }

    /// Sends what a flow's sender has to send now.
    #[inline]
    fn pump(&mut self, flow: u32) {
        let index = flow as usize;
        while let Some(segment) = self.senders[index].poll_transmit(self.now) {
            let route = &self.flows[index];
            let packet = Packet {
                flow,
                size: if segment.number == 0 { BARE } else { self.packet },
                kind: Kind::Data,
                epoch: route.epoch(),
                number: segment.number,
                sent: self.now,
                window: 0,
                sack: 0,
            };
            let out = route.out;
            self.enter_access(out, packet);
        }
        if self.senders[index].is_done() {
            self.finish(flow);
        }
        self.reschedule(flow);
    }

    /// A connection's data is all acknowledged.
    #[cold]
    fn finish(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.wake < Time::MAX || flow.began == Time::MAX {
            return;
        }
        let group = &mut self.groups[flow.group as usize];
        group.totals.completed += 1;
        group.totals.completion += u128::from(self.now.since(flow.began).as_nanos());
        flow.began = Time::MAX;
        let mut lot = random::stream(self.seed, 2, u64::from(index), u64::from(flow.round));
        if let Some(pause) = group.pause(&mut lot) {
            flow.wake = self.now + pause;
        }
    }

    /// A flow's application begins: its first connection, or a new one.
    fn begin(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let group = &mut self.groups[flow.group as usize];
        let sender = &mut self.senders[index as usize];
        if sender.statistics().sent > 0 {
            // What the connection before did is kept with the group.
            group.totals.add(sender.acknowledged(), sender.statistics());
            flow.round += 1;
        }
        flow.began = self.now;
        let round = u64::from(flow.round);
        let mut lot = random::stream(self.seed, 1, u64::from(index), round);
        let mut config = group.sender;
        config.clock_phase = config.clock.scaled(lot.unit());
        config.seed = lot.bits();
        *sender = Sender::new(&config, group.size(&mut lot));
        self.receivers[index as usize] = Receiver::new(&group.receiver);
    }

    fn wake_flow(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.pending != self.now {
            // Asked for before something earlier came up.
            return;
        }
        flow.pending = Time::MAX;
        if flow.wake <= self.now {
            flow.wake = Time::MAX;
            self.begin(index);
        }
        if let Some(ack) = self.receivers[index as usize].handle_timeout(self.now) {
            self.send_ack(index, &ack);
        }
        self.senders[index as usize].handle_timeout(self.now);
        self.pump(index);
    }

    /// Makes sure that a flow's event comes no later than it is needed.
    #[inline]
    pub(crate) fn reschedule(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let sender = self.senders[index as usize].poll_timeout().unwrap_or(Time::MAX);
        let receiver = self.receivers[index as usize].poll_timeout().unwrap_or(Time::MAX);
        let due = sender.min(receiver).min(flow.wake);
        // An event that comes too early finds nothing to do and asks again: a retransmission
        // timer that every ACK puts off costs one event per timeout, not one per ACK.
        if due < flow.pending {
            flow.pending = due;
            self.schedule(due, Event::Flow(index));
        }
    }

    fn send_datagram(&mut self, index: u32) {
        let source = &mut self.sources[index as usize];
        let gap = source.gap();
        let flow = source.flow;
        let route = &self.flows[flow as usize];
        self.groups[route.group as usize].totals.sent += 1;
        let packet = Packet {
            flow,
            size: self.packet,
            kind: Kind::Datagram,
            epoch: 0,
            number: 0,
            sent: self.now,
            window: 0,
            sack: 0,
        };
        let out = route.out;
        self.enter_access(out, packet);
        self.schedule(self.now + gap.max(Duration::from_nanos(1)), Event::Source(index));
    }

    /// Law 7: received = delivered + dropped + held, in every element.
    pub(crate) fn assert_conservation(&self) {
        assert!(self.access.iter().all(Access::conserves), "an access link lost count");
        assert!(self.hops.iter().all(Hop::conserves), "a hop lost count");
    }
}
