use sweetspot_scenario::{Scenario, Ties};
use sweetspot_sizing::{KnownPath, SenderReport};
use sweetspot_tcp::{Receiver, SackBlocks};
use sweetspot_units::{Duration, Time};

use crate::event::Event;
use crate::flow::{DIRECT, Flow, Way};
use crate::group::Group;
use crate::hop::{Hop, HopTotals};
use crate::inputs::{Input, Server};
use crate::ledger::Ledger;
use crate::packet::{Kind, Packet};
use crate::random;
use crate::scheduler::{Key, Scheduler};
use crate::shelf::Shelf;
use crate::source::Source;
use crate::target::Target;

/// Everything that moves, and the clock that moves it.
///
/// Sources (in [`Flow`]) and sinks (receivers) lie in arrays of their own under the same index,
/// because an event touches one of the two, never both. Targets are the first flows.
///
/// The clock follows what happens at routers. A host has its link to itself, so nothing but its
/// own packets and timers reaches it, in an order that is known: a packet for it is worked off
/// when it is known when it leaves the last router, with the time at which it will arrive, after
/// the timers that expire before. At a drop-tail queue that is known when it enters. A packet
/// thus costs one event to get to a router-to-router link, and another to come out only where
/// something waits for it at a router.
pub(crate) struct World<S> {
    pub now: Time,
    pub agenda: S,
    pub events: u64,
    order: Order,
    pub seed: u64,
    /// Forward hops, then as many backward ones, and the next event of each.
    pub hops: Vec<Hop>,
    pub hop_keys: Vec<Key>,
    /// The first of those events, and whose it is.
    next_hop: (Key, usize),
    pub flows: Vec<Flow>,
    pub receivers: Vec<Receiver>,
    pub groups: Vec<Group>,
    pub sources: Vec<Source>,
    pub inputs: Vec<Input>,
    pub servers: Vec<Server>,
    pub ledger: Option<Ledger>,
    pub targets: Vec<Target>,
    pub sacks: Shelf<SackBlocks>,
    pub reports: Shelf<SenderReport>,
    /// Bytes of a data packet on the wire.
    pub packet: u16,
    pub wire: WireTimes,
    /// When everything is looked at.
    pub observations: Vec<Time>,
    /// When everything is counted: packets that are through after the next such time are held
    /// back until then.
    pub counts: Vec<Time>,
    horizon: Time,
    /// What is known of the path before anything is sent.
    pub path: PathFacts,
}

/// What a static sizing is told about the path, as far as it does not change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathFacts {
    /// The narrow hop.
    pub narrow: usize,
    /// Its rate, the target's propagation, and what a first pass measured.
    pub known: KnownPath,
    /// Serialisation of a data packet there.
    pub packet_time: Duration,
    /// Since when the path was watched, and what its hops had done by then.
    pub before: Option<(Time, HopTotals, HopTotals)>,
}

/// How long packets take on the hosts' links, which are all alike.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WireTimes {
    rate: u64,
    packet: (u16, Duration),
    bare: (u16, Duration),
}

impl WireTimes {
    pub(crate) fn new(rate: sweetspot_units::Rate, packet: u16) -> WireTimes {
        let mut times = WireTimes {
            rate: rate.bits_per_second(),
            packet: (0, Duration::ZERO),
            bare: (0, Duration::ZERO),
        };
        times.packet = (packet, times.of(packet));
        times.bare = (crate::packet::BARE, times.of(crate::packet::BARE));
        times
    }

    #[inline]
    pub(crate) fn of(&self, size: u16) -> Duration {
        if size == self.packet.0 {
            self.packet.1
        } else if size == self.bare.0 {
            self.bare.1
        } else {
            Duration::from_nanos(u64::from(size) * 8_000_000_000 / self.rate)
        }
    }
}

/// Who goes first among simultaneous events.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// By lot. The lot hangs on the seed, the time and the event alone, not on how many lots
    /// were drawn before, so that how the work is cut into events decides nothing.
    Seeded(u64),
    Declared(u32),
}

impl Order {
    pub(crate) fn new(ties: Ties, seed: u64) -> Order {
        match ties {
            Ties::Seeded => Order::Seeded(random::stream(seed, 0, 0, 0).bits()),
            Ties::Declared => Order::Declared(0),
        }
    }

    #[inline]
    fn next(&mut self, at: Time, event: u32) -> u32 {
        match self {
            Order::Seeded(seed) => {
                // Multipliers of SplitMix64's finalizer (Steele, Lea, Flood 2014).
                let mixed = (at.as_nanos() ^ *seed).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = mixed ^ (mixed >> 32) ^ u64::from(event);
                (mixed.wrapping_mul(0x94d0_49bb_1331_11eb) >> 32) as u32
            }
            Order::Declared(count) => {
                *count = count.wrapping_add(1);
                *count
            }
        }
    }
}

impl<S: Scheduler> World<S> {
    pub(crate) fn new(agenda: S, scenario: &Scenario, known: KnownPath) -> World<S> {
        let packet = scenario.path.packet.get() as u16;
        let narrow = scenario.path.bottleneck();
        World {
            now: Time::ZERO,
            agenda,
            events: 0,
            order: Order::new(scenario.ties, scenario.seed),
            seed: scenario.seed,
            hops: Vec::new(),
            hop_keys: Vec::new(),
            next_hop: (Key::NEVER, 0),
            flows: Vec::new(),
            receivers: Vec::new(),
            groups: Vec::new(),
            sources: Vec::new(),
            inputs: Vec::new(),
            servers: Vec::new(),
            ledger: None,
            targets: Vec::new(),
            sacks: Shelf::default(),
            reports: Shelf::default(),
            packet,
            wire: WireTimes::new(scenario.path.access_rate, packet),
            observations: Vec::new(),
            counts: Vec::new(),
            horizon: Time::ZERO,
            path: PathFacts {
                narrow,
                known,
                packet_time: scenario.path.packet / scenario.path.narrow().rate,
                before: None,
            },
        }
    }

    #[inline]
    fn key(&mut self, at: Time, event: Event) -> Key {
        let event = event.pack();
        Key::new(at, self.order.next(at, event), event)
    }

    /// Asks for `event` at `at`.
    #[inline]
    pub(crate) fn schedule(&mut self, at: Time, event: Event) {
        debug_assert!(at >= self.now, "{event:?} is asked for in the past");
        let key = self.key(at, event);
        self.agenda.push(key);
    }

    /// Works events off until everything is to be looked at; gives back for which time.
    pub(crate) fn run(&mut self) -> Option<usize> {
        loop {
            // Hops are few and each has an event nearly always: their keys stay out of the
            // agenda, which is then the hosts' alone.
            let next = self.agenda.peek();
            let (hop_key, hop) = self.next_hop;
            if hop_key < next {
                self.now = hop_key.at();
                self.events += 1;
                self.leave_hop(hop);
                continue;
            }
            if next == Key::NEVER {
                return None;
            }
            debug_assert!(next.at() >= self.now, "time runs backwards");
            self.now = next.at();
            self.events += 1;
            self.agenda.pop();
            match Event::unpack(next.event()) {
                Event::Feed(i) => self.leave_feed(i),
                Event::FarFeed(i) => self.leave_far_feed(i),
                Event::Flow(i) => self.wake_flow(i),
                Event::Source(i) => self.wake_source(i),
                Event::Observe(i) => return Some(i as usize),
                Event::Input(i) => self.leave_input(i),
                Event::Hop(_) => {}
            }
        }
    }

    #[inline]
    fn leave_feed(&mut self, index: u32) {
        let Some((packet, next)) = self.flows[index as usize].feed.arrive() else { return };
        if let Some(due) = next {
            self.schedule(due, Event::Feed(index));
        }
        match self.flows[index as usize].input {
            DIRECT => self.enter_routers(&packet),
            input => self.enter_input(input, packet),
        }
    }

    fn leave_far_feed(&mut self, index: u32) {
        let Some((packet, next)) = self.targets[index as usize].feed.arrive() else { return };
        if let Some(due) = next {
            self.schedule(due, Event::FarFeed(index));
        }
        self.enter_routers(&packet);
    }

    /// Works off what was held back for the sake of a count that is now past. Nothing that
    /// comes out of the routers after the next count is worked off before it.
    pub(crate) fn look_ahead(&mut self) {
        let next = self.counts.iter().find(|count| **count > self.now);
        self.horizon = next.copied().unwrap_or(Time::MAX);
        for index in 0..self.hops.len() {
            while let Some((out, packet)) = self.hops[index].held_back.front().copied()
                && out < self.horizon
            {
                self.hops[index].held_back.pop_front();
                self.leave_routers(out, &packet);
            }
        }
    }

    /// A packet is at its first router.
    #[inline]
    pub(crate) fn enter_routers(&mut self, packet: &Packet) {
        let way = packet.kind.way();
        let hop = match self.hops.len() {
            2 => 0,
            _ => self.flows[packet.flow as usize].entry(way),
        };
        self.enter_hop(way, hop, packet);
    }

    #[inline]
    fn enter_hop(&mut self, way: Way, hop: u16, packet: &Packet) {
        let index = way as usize * (self.hops.len() / 2) + usize::from(hop);
        if !self.hops[index].foresees() {
            return self.enter_managed(index, packet);
        }
        let Some(out) = self.hops[index].pass(self.now, packet.size) else {
            return self.drop_packet(packet);
        };
        if self.is_bound_for_host(way, hop, packet) {
            if out < self.horizon {
                return self.leave_routers(out, packet);
            }
            return self.hops[index].held_back.push_back((out, *packet));
        }
        self.hops[index].keep(out, *packet);
        if self.hop_keys[index] == Key::NEVER {
            self.ask_for_hop(index);
        }
    }

    /// Enters a hop whose queue decides later what becomes of a packet.
    fn enter_managed(&mut self, index: usize, packet: &Packet) {
        let taken = self.hops[index].enter(self.now, *packet);
        if self.hop_keys[index] == Key::NEVER {
            self.ask_for_hop(index);
        }
        if let Err(packet) = taken {
            self.drop_packet(&packet);
        }
    }

    /// Whether nothing but the packet's own host waits for it behind this hop.
    #[inline]
    fn is_bound_for_host(&self, way: Way, hop: u16, packet: &Packet) -> bool {
        // The sinks of cross traffic are at the last router, those of targets are not; nobody
        // answers datagrams.
        let leaves = !packet.kind.goes_with_data()
            || (packet.flow as usize) < self.targets.len()
            || packet.kind.bare() == Kind::Datagram;
        leaves
            && (self.hops.len() == 2 || self.flows[packet.flow as usize].after(way, hop).is_none())
    }

    #[inline]
    fn ask_for_hop(&mut self, index: usize) {
        let key = match self.hops[index].due() {
            Some(due) => self.key(due.max(self.now), Event::Hop(index as u32)),
            None => Key::NEVER,
        };
        self.hop_keys[index] = key;
        if key < self.next_hop.0 {
            self.next_hop = (key, index);
        } else if self.next_hop.1 == index {
            self.next_hop = (Key::NEVER, 0);
            for (i, key) in self.hop_keys.iter().enumerate() {
                if *key < self.next_hop.0 {
                    self.next_hop = (*key, i);
                }
            }
        }
    }

    #[cold]
    fn drop_packet(&mut self, packet: &Packet) {
        match packet.kind.bare() {
            Kind::Ack => drop(self.sacks.take(packet)),
            Kind::Answer => drop(self.reports.take(packet)),
            Kind::Data | Kind::Datagram => {
                let flow = &mut self.flows[packet.flow as usize];
                flow.dropped += 1;
                if let Some(ledger) = &mut self.ledger {
                    ledger.note_loss(packet.flow, self.now);
                }
                self.groups[flow.group as usize].totals.dropped += 1;
            }
            // They go over the connection, which sends again what is lost.
            Kind::Request => {
                self.targets[packet.flow as usize].lost_requests.push(packet.number);
            }
            _ => {}
        }
    }

    #[inline]
    fn leave_hop(&mut self, index: usize) {
        let left = self.hops[index].exit(self.now);
        self.ask_for_hop(index);
        while let Some(victim) = self.hops[index].poll_victim() {
            self.drop_packet(&victim);
        }
        let Some(packet) = left else { return };
        let half = self.hops.len() / 2;
        if half > 1 {
            let way = packet.kind.way();
            let flow = &self.flows[packet.flow as usize];
            if let Some(next) = flow.after(way, (index - way as usize * half) as u16) {
                return self.enter_hop(way, next, &packet);
            }
        }
        self.leave_routers(self.now, &packet);
    }

    /// A packet leaves the last router at `out`, which may lie ahead.
    #[inline]
    fn leave_routers(&mut self, out: Time, packet: &Packet) {
        if packet.kind.goes_with_data() {
            self.reach_sink(out, packet);
        } else {
            self.reach_source(out, packet);
        }
    }

    /// Makes sure that a flow's event comes no later than it is needed at `due`.
    #[inline]
    pub(crate) fn expect(&mut self, index: u32, due: Time) {
        // An event that comes too early finds nothing to do and asks again: a retransmission
        // timer that every ACK puts off costs one event per timeout, not one per ACK.
        if due < self.flows[index as usize].pending {
            self.flows[index as usize].pending = due;
            let due = due.max(self.now);
            self.schedule(due, Event::Flow(index));
        }
    }

    fn wake_flow(&mut self, index: u32) {
        let at = index as usize;
        if self.flows[at].pending > self.now {
            // Asked for before something else came up.
            return;
        }
        self.run_source_timers(index, self.now, true);
        // An ACK sent here may be worked off here, as far ahead as it arrives.
        self.run_sink_timers(index, self.now, true);
        self.flows[at].pending = Time::MAX;
        let due = self.flows[at].source_due().min(self.sink_due(at));
        self.expect(index, due);
    }

    /// Law 7: received = delivered + dropped + held, in every element.
    pub(crate) fn assert_conservation(&self) {
        assert!(self.hops.iter().all(Hop::conserves), "a hop lost count");
    }
}
