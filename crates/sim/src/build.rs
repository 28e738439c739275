//! Builds a world from a scenario.

use sweetspot_scenario::{
    Cross, Inputs, Path, PathDirection, Reverse, Scenario, TrafficKind, Transfer,
};
use sweetspot_sizing::{KnownPath, Sizing};
use sweetspot_units::{Bytes, Deadline, Duration, Time};

use crate::event::Event;
use crate::hosts::{
    Application, ControllerMaker, Gaps, Group, Reader, Sends, Server, Target, TrafficSource, Writer,
};
use crate::network::{Direction, Hop};
use crate::observers::{GroupTotals, HostMonitor};
use crate::random;
use crate::scheduler::Scheduler;
use crate::world::World;

/// Builds the world of `scenario`, with all initial events in its queue.
///
/// `makers` has the caller's own controllers for transfers, by index.
pub(crate) fn build<S: Scheduler>(
    scenario: &Scenario,
    known: KnownPath,
    scheduler: S,
    mut makers: Vec<Option<ControllerMaker>>,
) -> World<S> {
    makers.resize_with(scenario.transfers.len(), || None);
    let mut world = World::new(scheduler, scenario, known);
    for (direction, way) in [(0, PathDirection::Forward), (1, PathDirection::Backward)] {
        for (i, hop) in scenario.path.hops_of(way).iter().enumerate() {
            let seed = random::stream(scenario.seed, 3, direction, i as u64).bits();
            let variation = scenario.path.variation(way, i);
            world.network.push_hop(Hop::new(hop, variation, scenario.path.packet, seed));
        }
    }
    let begin = Time::ZERO + scenario.warmup;
    let measured = (begin, begin + scenario.duration);
    let mut builder = Builder { world, path: &scenario.path, measured };
    for (transfer, maker) in scenario.transfers.iter().zip(makers) {
        builder.add_transfer(transfer, maker);
    }
    for cross in &scenario.cross {
        builder.add_cross(cross);
    }
    if let Some(pool) = scenario.send_pool {
        builder.add_source(Sends::SendPool(pool), Time::ZERO, POOL_INTERVAL_S, Gaps::Constant);
    }
    builder.world
}

/// Interval at which a pool of send buffers is divided again: BSD's slow timer.
const POOL_INTERVAL_S: f64 = 0.5;

struct Builder<'a, S> {
    world: World<S>,
    path: &'a Path,
    measured: (Time, Time),
}

impl<S: Scheduler> Builder<'_, S> {
    fn add_transfer(&mut self, transfer: &Transfer, maker: Option<ControllerMaker>) {
        let window = match transfer.sizing {
            Sizing::Fixed(window) if maker.is_none() => Some(window),
            _ => None,
        };
        let payload = self.path.packet.saturating_sub(transfer.tcp.header);
        let packets = transfer.size.map(|size| size.get().div_ceil(payload.get().max(1)));
        let application = Application::Bulk(packets);
        let mut group =
            Group::new(&transfer.tcp, transfer.congestion, self.path.packet, window, application);
        let is_static =
            matches!(transfer.sizing, Sizing::Fixed(_) | Sizing::Max | Sizing::BdpBy(_));
        if maker.is_some() || !is_static {
            // Linux: the first window is 64 kB.
            group.receiver.first_window = Some((65_535 / payload.get().max(1)).max(2));
        }
        let group = self.add_group(group);
        // The links of the two hosts share the propagation delay that the hops leave: Figure 2.
        let last = self.path.hops.len() - 1;
        let each = self.path.rtt.saturating_sub(self.path.between((0, last))) / 4;
        self.world.hosts.targets.push(Target::new(each, transfer, maker));
        self.world.observers.monitors.push(HostMonitor::new(self.measured));
        let start = Time::ZERO + transfer.start;
        let index = self.world.hosts.push_flow(group, Direction::Forward, (0, last as u16), each);
        self.add_applications(index, transfer, (payload, packets));
        if !transfer.follows {
            self.start_flow(index, start);
        }
        debug_assert_eq!(index as usize + 1, self.world.hosts.targets.len());
    }

    /// Adds the applications of a measured transfer that are slower than TCP.
    fn add_applications(&mut self, index: u32, transfer: &Transfer, size: (Bytes, Option<u64>)) {
        let start = Time::ZERO + transfer.start;
        let random = random::stream(self.world.hosts.seed, 6, u64::from(index), 0);
        let window = self.world.hosts.group(index as usize).receiver.window;
        let target = &mut self.world.hosts.targets[index as usize];
        target.writer = Writer::new(&transfer.writer, start, size, random).map(Box::new);
        target.reader = Reader::new(transfer, size.0, window).map(Box::new);
    }

    fn add_cross(&mut self, cross: &Cross) {
        let (count, nodes, window, application) = match cross.kind {
            TrafficKind::Pareto { count, .. } | TrafficKind::Poisson { count, .. } => {
                (count, count, None, Application::Datagrams)
            }
            TrafficKind::Elephants { count, window } => {
                (count, count, window, Application::Bulk(None))
            }
            TrafficKind::Mice { count, nodes, packets, sleep, window } => {
                (count, nodes, window, Application::Mice { packets, sleep })
            }
            TrafficKind::ClosedLoop { users, nodes, size_mean, size_shape, think_mean, window } => {
                let application = Application::ClosedLoop {
                    size_mean: size_mean.as_f64(),
                    size_shape,
                    think_mean: think_mean.as_secs_f64(),
                };
                (users, nodes, window, application)
            }
            TrafficKind::Arrivals { nodes, size_mean, size_shape, window, .. } => {
                let size_mean = size_mean.as_f64();
                (nodes, nodes, window, Application::Arrival { size_mean, size_shape })
            }
        };
        let group = self.add_group(Group::new(
            &cross.tcp,
            cross.congestion,
            self.path.packet,
            window,
            application,
        ));
        let ways: &[Direction] = match self.path.reverse {
            Reverse::Mirror => &[Direction::Forward, Direction::Backward],
            Reverse::Clean => &[Direction::Forward],
        };
        for direction in ways {
            if let Some(inputs) = cross.inputs {
                self.add_inputs(cross, inputs, group, *direction);
            }
            self.add_flows(cross, group, *direction, count, nodes);
        }
    }

    /// Adds input links and the servers behind them, with evenly spaced RTTs.
    fn add_inputs(&mut self, cross: &Cross, inputs: Inputs, group: u32, direction: Direction) {
        let links: Vec<u32> =
            (0..inputs.count).map(|_| self.world.network.push_input(inputs.rate)).collect();
        let from = self.world.hosts.servers.len() as u32;
        for server in 0..inputs.servers {
            let delay = self.access_delay(cross, server, inputs.servers);
            let input = links[(server % inputs.count) as usize];
            self.world.hosts.servers.push(Server { delay, input });
        }
        let until = self.world.hosts.servers.len() as u32;
        self.world.hosts.groups[group as usize].servers[direction as usize] = from..until;
    }

    /// Propagation delay between the first router and node `node` of `nodes`.
    fn access_delay(&self, cross: &Cross, node: u64, nodes: u64) -> Duration {
        let share = if nodes > 1 { node as f64 / (nodes - 1) as f64 } else { 0.5 };
        let rtt = cross.rtt.0 + (cross.rtt.1 - cross.rtt.0).scaled(share);
        rtt.saturating_sub(self.path.between(cross.hops)) / 2
    }

    /// Adds `count` flows with `nodes` different RTTs, evenly spaced.
    fn add_flows(
        &mut self,
        cross: &Cross,
        group: u32,
        direction: Direction,
        count: u64,
        nodes: u64,
    ) {
        let hops = (cross.hops.0 as u16, cross.hops.1 as u16);
        for node in 0..nodes {
            let delay = self.access_delay(cross, node, nodes);
            let own = count / nodes + u64::from(node < count % nodes);
            for _ in 0..own {
                let mut rng = random::stream(
                    self.world.hosts.seed,
                    4,
                    self.world.hosts.flows.len() as u64,
                    0,
                );
                let start = Time::ZERO + rng.between(cross.start);
                let index = self.world.hosts.push_flow(group, direction, hops, delay);
                self.start_member(cross, index, start, nodes);
            }
        }
    }

    fn start_member(&mut self, cross: &Cross, index: u32, start: Time, nodes: u64) {
        let bits = self.path.packet.as_f64() * 8.0;
        match cross.kind {
            TrafficKind::Pareto { rate, shape, .. } => {
                let mean = bits / rate.as_f64();
                self.start_datagrams(index, start, mean, Gaps::Pareto { shape });
            }
            TrafficKind::Poisson { rate, .. } => {
                self.start_datagrams(index, start, bits / rate.as_f64(), Gaps::Exponential);
            }
            TrafficKind::Arrivals { rate, size_mean, .. } => {
                // Each node opens an equal share of the connections.
                let mean = size_mean.as_f64() * 8.0 / rate.as_f64() * nodes as f64;
                self.add_source(Sends::Connections(index), start, mean, Gaps::Exponential);
            }
            TrafficKind::Elephants { .. }
            | TrafficKind::Mice { .. }
            | TrafficKind::ClosedLoop { .. } => {
                self.start_flow(index, start);
            }
        }
    }

    fn start_datagrams(&mut self, index: u32, start: Time, mean: f64, gaps: Gaps) {
        // A datagram's time is its arrival time at the router.
        let delay = self.world.hosts.flows[index as usize].delay;
        let start = start + delay + self.world.network.wire_times.of(self.world.hosts.packet_size);
        self.add_source(Sends::Datagrams(index), start, mean, gaps);
    }

    fn add_source(&mut self, sends: Sends, start: Time, mean: f64, gaps: Gaps) {
        let index = self.world.hosts.traffic_sources.len() as u32;
        let random = random::stream(self.world.hosts.seed, 5, u64::from(index), 0);
        self.world.hosts.traffic_sources.push(TrafficSource::new(sends, random, mean, gaps));
        self.world.queue.schedule(start, Event::Source(index));
    }

    fn start_flow(&mut self, index: u32, start: Time) {
        let start = Deadline::at(start);
        self.world.hosts.flows[index as usize].wake = start;
        self.world.expect(index, start);
    }

    fn add_group(&mut self, group: Group) -> u32 {
        self.world.hosts.groups.push(group);
        self.world.observers.totals.push(GroupTotals::default());
        (self.world.hosts.groups.len() - 1) as u32
    }
}
