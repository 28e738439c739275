use sweetspot_scenario::{Scenario, Ties};
use sweetspot_sizing::{KnownPath, SenderReport};
use sweetspot_tcp::{Receiver, SackBlocks};
use sweetspot_units::{Duration, Time};

use crate::event::Event;
use crate::flow::{DIRECT, Direction, Flow};
use crate::group::Group;
use crate::hop::{Hop, HopTotals};
use crate::inputs::{Input, Server};
use crate::packet::{Kind, Packet};
use crate::random;
use crate::recorder::FlowRecorder;
use crate::scheduler::{Key, Scheduler};
use crate::slab::Slab;
use crate::source::Source;
use crate::target::Target;
use crate::uplink::{Arrived, Transit};

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
    pub event_queue: S,
    pub events: u64,
    order: TieOrder,
    pub seed: u64,
    /// Forward hops, then as many backward ones, and the next event of each.
    pub hops: Vec<Hop>,
    pub hop_next_events: Vec<NextEvent>,
    /// When the first of those events comes, and whose it is.
    next_hop: (Time, usize),
    /// Of how many packets that come out of each hop next the flows have been read ahead.
    pub unread: Vec<usize>,
    pub transit: Transit,
    pub flows: Vec<Flow>,
    pub receivers: Vec<Receiver>,
    pub groups: Vec<Group>,
    pub sources: Vec<Source>,
    pub inputs: Vec<Input>,
    pub servers: Vec<Server>,
    pub recorder: Option<FlowRecorder>,
    pub targets: Vec<Target>,
    pub sacks: Slab<SackBlocks>,
    pub reports: Slab<SenderReport>,
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

/// What a static sizing knows of the path, as far as it does not change.
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

/// A hop's next event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextEvent {
    /// [`Time::MAX`]: it has none.
    at: Time,
    /// How many events were asked for before it, where that decides.
    declared: u32,
}

impl NextEvent {
    pub(crate) const NONE: NextEvent = NextEvent { at: Time::MAX, declared: 0 };
}

/// Who goes first among simultaneous events.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TieOrder {
    /// At random. The order hangs on the seed, the time and the event alone, not on how many numbers
    /// were drawn before, so that how the work is cut into events decides nothing.
    Seeded(u64),
    Declared(u32),
}

impl TieOrder {
    pub(crate) fn new(ties: Ties, seed: u64) -> TieOrder {
        match ties {
            Ties::Seeded => TieOrder::Seeded(random::stream(seed, 0, 0, 0).bits()),
            Ties::Declared => TieOrder::Declared(0),
        }
    }

    /// One more event is asked for.
    #[inline]
    fn declare(&mut self) -> u32 {
        match self {
            TieOrder::Seeded(_) => 0,
            TieOrder::Declared(count) => {
                *count = count.wrapping_add(1);
                *count
            }
        }
    }

    /// The place of an event that was `declared` as that number.
    #[inline]
    fn key(&self, at: Time, declared: u32, event: Event) -> Key {
        Key::new(at, self.tie_break(at, declared, event), event.pack())
    }

    /// Its place among those of the same time.
    #[inline]
    fn tie_break(&self, at: Time, declared: u32, event: Event) -> u32 {
        match self {
            TieOrder::Seeded(seed) => {
                // Multipliers of SplitMix64's finalizer (Steele, Lea, Flood 2014).
                let mixed = (at.as_nanos() ^ *seed).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = mixed ^ (mixed >> 32) ^ u64::from(event.pack());
                (mixed.wrapping_mul(0x94d0_49bb_1331_11eb) >> 32) as u32
            }
            TieOrder::Declared(_) => declared,
        }
    }
}

/// So many flows do not fit a core's own cache (a megabyte or two).
const CROWD: usize = 5000;

/// Packets whose flows are read ahead at a time: as many reads as a core has under way at most.
const BATCH: usize = 16;

impl<S: Scheduler> World<S> {
    pub(crate) fn new(event_queue: S, scenario: &Scenario, known: KnownPath) -> World<S> {
        let packet = scenario.path.packet.get() as u16;
        let narrow = scenario.path.bottleneck();
        World {
            now: Time::ZERO,
            event_queue,
            events: 0,
            order: TieOrder::new(scenario.ties, scenario.seed),
            seed: scenario.seed,
            hops: Vec::new(),
            hop_next_events: Vec::new(),
            next_hop: (Time::MAX, 0),
            unread: Vec::new(),
            transit: Transit::default(),
            flows: Vec::new(),
            receivers: Vec::new(),
            groups: Vec::new(),
            sources: Vec::new(),
            inputs: Vec::new(),
            servers: Vec::new(),
            recorder: None,
            targets: Vec::new(),
            sacks: Slab::default(),
            reports: Slab::default(),
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

    /// Asks for `event` at `at`.
    #[inline]
    pub(crate) fn schedule(&mut self, at: Time, event: Event) {
        debug_assert!(at >= self.now, "{event:?} is asked for in the past");
        let declared = self.order.declare();
        self.event_queue.push(self.order.key(at, declared, event));
    }

    /// Works events off until everything is to be looked at; gives back for which time.
    pub(crate) fn run(&mut self) -> Option<usize> {
        loop {
            // Hops are few and each has an event nearly always: they stay out of the event queue,
            // which is then the hosts' alone.
            let next = self.event_queue.peek();
            let (hop_at, hop) = self.next_hop;
            if hop_at < next.at() || (hop_at == next.at() && self.hop_key(hop) < next) {
                self.now = hop_at;
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
            self.event_queue.pop();
            match Event::unpack(next.event()) {
                Event::Arrival(place) => self.arrive(place),
                Event::Flow(i) => self.wake_flow(i),
                Event::Source(i) => self.wake_source(i),
                Event::Observe(i) => {
                    // Looking is not part of what is looked at.
                    self.events -= 1;
                    return Some(i as usize);
                }
                // They are asked for in other ways.
                Event::Uplink(_) | Event::FarFeed(_) | Event::Input(_) | Event::Hop(_) => {}
            }
        }
    }

    /// A packet has come over a host's link.
    #[inline(always)]
    fn arrive(&mut self, place: u32) {
        let Arrived { packet, uplink, next } = self.transit.take(place);
        if let Some((due, place)) = next {
            self.schedule_arrival(due, place, uplink);
        }
        if let Event::Uplink(flow) = uplink
            && !self.inputs.is_empty()
        {
            let input = self.flows[flow as usize].input;
            if input != DIRECT {
                return self.enter_input(input, packet);
            }
        }
        self.enter_routers(&packet);
    }

    /// Asks for the arrival of the packet in a place of the transit, the first one of `uplink`.
    #[inline(always)]
    pub(crate) fn schedule_arrival(&mut self, due: Time, place: u32, uplink: Event) {
        let declared = self.order.declare();
        let tie_break = self.order.tie_break(due, declared, uplink);
        self.event_queue.push(Key::new(due, tie_break, Event::Arrival(place).pack()));
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
                self.reach_host(out, &packet);
            }
        }
    }

    /// A packet is at its first router.
    #[inline(always)]
    pub(crate) fn enter_routers(&mut self, packet: &Packet) {
        let direction = packet.kind.direction();
        let hop = match self.hops.len() {
            2 => 0,
            _ => self.flows[packet.flow as usize].entry(direction),
        };
        self.enter_hop(direction, hop, packet);
    }

    #[inline(always)]
    fn enter_hop(&mut self, direction: Direction, hop: u16, packet: &Packet) {
        let index = direction as usize * (self.hops.len() / 2) + usize::from(hop);
        if !self.hops[index].is_drop_tail() {
            return self.enter_managed(index, packet);
        }
        if self.is_bound_for_host(direction, hop, packet) {
            let Some(out) = self.hops[index].pass(self.now, packet.size) else {
                return self.drop_packet(packet);
            };
            if out < self.horizon {
                return self.reach_host(out, packet);
            }
            return self.hops[index].held_back.push_back((out, *packet));
        }
        if !self.hops[index].enter(self.now, packet) {
            return self.drop_packet(packet);
        }
        if self.hop_next_events[index].at == Time::MAX {
            self.ask_for_hop(index);
        }
    }

    /// Enters a hop whose queue decides later what becomes of a packet.
    #[inline(never)]
    fn enter_managed(&mut self, index: usize, packet: &Packet) {
        let taken = self.hops[index].enter_managed(self.now, *packet);
        if self.hop_next_events[index].at == Time::MAX {
            self.ask_for_hop(index);
        }
        if let Err(packet) = taken {
            self.drop_packet(&packet);
        }
    }

    /// Whether nothing but the packet's own host waits for it behind this hop.
    #[inline]
    fn is_bound_for_host(&self, direction: Direction, hop: u16, packet: &Packet) -> bool {
        // The sinks of cross traffic are at the last router, those of targets are not; nobody
        // answers datagrams.
        let leaves = !packet.kind.goes_with_data()
            || (packet.flow as usize) < self.targets.len()
            || packet.kind.bare() == Kind::Datagram;
        leaves
            && (self.hops.len() == 2
                || self.flows[packet.flow as usize].after(direction, hop).is_none())
    }

    /// Finds out when a hop wants to act next, and which hop does so first.
    #[inline]
    fn ask_for_hop(&mut self, index: usize) {
        let Some(due) = self.hops[index].due() else {
            self.hop_next_events[index] = NextEvent::NONE;
            return self.choose_hop();
        };
        let declared = self.order.declare();
        self.hop_next_events[index] = NextEvent { at: due.max(self.now), declared };
        self.choose_hop();
    }

    #[inline(always)]
    fn choose_hop(&mut self) {
        let mut next = (Time::MAX, 0);
        for (index, next_event) in self.hop_next_events.iter().enumerate() {
            let ties = next_event.at == next.0 && next_event.at < Time::MAX;
            if next_event.at < next.0 || (ties && self.hop_key(index) < self.hop_key(next.1)) {
                next = (next_event.at, index);
            }
        }
        self.next_hop = next;
    }

    /// The place in time of a hop's next event.
    #[cold]
    fn hop_key(&self, index: usize) -> Key {
        match self.hop_next_events.get(index) {
            Some(NextEvent { at, declared }) if *at < Time::MAX => {
                self.order.key(*at, *declared, Event::Hop(index as u32))
            }
            _ => Key::NEVER,
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
                if let Some(recorder) = &mut self.recorder {
                    recorder.note_loss(packet.flow, self.now);
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

    #[inline(always)]
    fn leave_hop(&mut self, index: usize) {
        let left = self.hops[index].exit(self.now);
        self.ask_for_hop(index);
        if self.flows.len() >= CROWD {
            self.read_ahead(index);
        }
        while let Some(victim) = self.hops[index].poll_victim() {
            self.drop_packet(&victim);
        }
        let Some(packet) = left else { return };
        let half = self.hops.len() / 2;
        if half > 1 {
            let direction = packet.kind.direction();
            let flow = &self.flows[packet.flow as usize];
            if let Some(next) = flow.after(direction, (index - direction as usize * half) as u16) {
                return self.enter_hop(direction, next, &packet);
            }
        }
        self.leave_routers(&packet);
    }

    /// Reads from memory what packets that come out of a hop soon will need of their flows, many
    /// at a time: the memory answers them together.
    #[inline(never)]
    fn read_ahead(&mut self, index: usize) {
        self.unread[index] -= 1;
        if self.unread[index] > 0 {
            return;
        }
        self.unread[index] = BATCH;
        self.read_near();
        for number in BATCH..2 * BATCH {
            let Some(packet) = self.hops[index].upcoming(number) else { return };
            self.receivers[packet.flow as usize].read_ahead();
            self.flows[packet.flow as usize].read_ahead();
        }
    }

    /// The same for what the hosts do soon.
    #[inline(never)]
    fn read_near(&mut self) {
        while let Some(event) = self.event_queue.poll_near() {
            match Event::unpack(event) {
                Event::Arrival(place) => self.transit.read_ahead(place),
                Event::Flow(flow) => {
                    self.receivers[flow as usize].read_ahead();
                    self.flows[flow as usize].read_ahead();
                }
                _ => {}
            }
        }
    }

    /// A packet leaves the last router now.
    #[inline(always)]
    fn leave_routers(&mut self, packet: &Packet) {
        if packet.kind.goes_with_data() {
            self.reach_sink(packet);
        } else {
            self.reach_source(self.now, packet);
        }
    }

    /// The same at `out`, which may lie ahead, where only the packet's host is behind.
    #[inline]
    fn reach_host(&mut self, out: Time, packet: &Packet) {
        if packet.kind.goes_with_data() {
            self.reach_far_sink(out, packet);
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
