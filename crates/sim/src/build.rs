//! From what is written to what runs.

use sweetspot_scenario::{Cross, Kind, Path, Reverse, Scenario};
use sweetspot_sizing::Sizing;
use sweetspot_tcp::{Receiver, Sender};
use sweetspot_units::{Duration, Rate, Time, Volume};

use crate::access::Access;
use crate::event::Event;
use crate::flow::{Flow, Way};
use crate::group::{Application, Group};
use crate::hop::Hop;
use crate::random;
use crate::scheduler::Scheduler;
use crate::source::{Gaps, Source};
use crate::target::Target;
use crate::world::World;

/// A world as `scenario` describes it, with everything that starts by itself on its agenda.
pub(crate) fn build<S: Scheduler>(scenario: &Scenario, agenda: S) -> World<S> {
    let packet = scenario.path.packet.get() as u16;
    let mut world = World::new(agenda, scenario.ties, scenario.seed, packet);
    for way in [0, 1] {
        for (i, hop) in scenario.path.hops.iter().enumerate() {
            let seed = random::stream(scenario.seed, 3, way, i as u64).bits();
            world.hops.push(Hop::new(hop, seed));
        }
    }
    let mut builder = Builder { world, path: &scenario.path };
    for transfer in &scenario.transfers {
        builder.add_transfer(transfer);
    }
    for cross in &scenario.cross {
        builder.add_cross(cross);
    }
    builder.world
}

struct Builder<'a, S> {
    world: World<S>,
    path: &'a Path,
}

/// The links of a host to its router, both directions.
#[derive(Clone, Copy)]
struct Node {
    out: u32,
    back: u32,
}

impl<S: Scheduler> Builder<'_, S> {
    fn add_transfer(&mut self, transfer: &sweetspot_scenario::Transfer) {
        let window = match transfer.sizing {
            Sizing::Fixed(window) => Some(window),
            _ => None,
        };
        let payload = self.path.packet.saturating_sub(transfer.tcp.header);
        let packets = transfer.size.map(|size| size.get().div_ceil(payload.get().max(1)));
        let application = Application::Bulk(packets);
        let group = self.add_group(Group::new(
            &transfer.tcp,
            transfer.congestion,
            self.path.packet,
            window,
            application,
        ));
        // What propagation the hops leave is spread over the two hosts' links: Figure 2.
        let between = self.path.hops.iter().fold(Duration::ZERO, |sum, hop| sum + hop.delay);
        let each = (self.path.rtt / 2).saturating_sub(between) / 2;
        let (near, far) = (self.add_node(each), self.add_node(each));
        let last = (self.path.hops.len() - 1) as u16;
        let flow = Flow {
            far_out: Some(far.back),
            far_back: Some(far.out),
            ..flow(group, Way::Forward, near, (0, last))
        };
        let index = self.add_flow(flow, Time::ZERO + transfer.start);
        debug_assert_eq!(index as usize, self.world.targets.len());
        self.world.targets.push(Target::default());
    }

    fn add_cross(&mut self, cross: &Cross) {
        let (count, nodes, window, application) = match cross.kind {
            Kind::Pareto { count, .. } | Kind::Poisson { count, .. } => {
                (count, count, None, Application::Datagrams)
            }
            Kind::Elephants { count, window } => (count, count, window, Application::Bulk(None)),
            Kind::Mice { count, nodes, packets, sleep, window } => {
                (count, nodes, window, Application::Mice { packets, sleep })
            }
            Kind::ClosedLoop { users, nodes, size_mean, size_shape, think_mean, window } => {
                let application = Application::ClosedLoop {
                    size_mean: size_mean.as_f64(),
                    size_shape,
                    think_mean: think_mean.as_secs_f64(),
                };
                (users, nodes, window, application)
            }
            Kind::Arrivals { .. } => return,
        };
        let group = self.add_group(Group::new(
            &cross.tcp,
            cross.congestion,
            self.path.packet,
            window,
            application,
        ));
        let ways: &[Way] = match self.path.reverse {
            Reverse::Mirror => &[Way::Forward, Way::Backward],
            Reverse::Clean => &[Way::Forward],
        };
        for way in ways {
            self.add_sources(cross, group, *way, count, nodes);
        }
    }

    /// `count` flows on `nodes` hosts whose round trips are spread evenly.
    fn add_sources(&mut self, cross: &Cross, group: u32, way: Way, count: u64, nodes: u64) {
        let hops = &self.path.hops[cross.hops.0..=cross.hops.1];
        let between = hops.iter().fold(Duration::ZERO, |sum, hop| sum + hop.delay);
        for node in 0..nodes {
            let share = if nodes > 1 { node as f64 / (nodes - 1) as f64 } else { 0.5 };
            let rtt = cross.rtt.0 + (cross.rtt.1 - cross.rtt.0).scaled(share);
            let near = self.add_node((rtt / 2).saturating_sub(between));
            let own = count / nodes + u64::from(node < count % nodes);
            for _ in 0..own {
                let hops = (cross.hops.0 as u16, cross.hops.1 as u16);
                let mut lot =
                    random::stream(self.world.seed, 4, self.world.flows.len() as u64, 0);
                let start = Time::ZERO + random::between(&mut lot, cross.start);
                let flow = flow(group, way, near, hops);
                match cross.kind {
                    Kind::Pareto { rate, shape, .. } => {
                        self.add_source(flow, start, rate, Gaps::Pareto { shape });
                    }
                    Kind::Poisson { rate, .. } => {
                        self.add_source(flow, start, rate, Gaps::Exponential);
                    }
                    _ => {
                        self.add_flow(flow, start);
                    }
                }
            }
        }
    }

    fn add_source(&mut self, flow: Flow, start: Time, rate: Rate, gaps: Gaps) {
        let index = self.push_flow(flow);
        let random = random::stream(self.world.seed, 5, u64::from(index), 0);
        let mean = self.path.packet.as_f64() * 8.0 / rate.as_f64();
        let source = self.world.sources.len() as u32;
        self.world.sources.push(Source::new(index, random, mean, gaps));
        self.world.schedule(start, Event::Source(source));
    }

    fn add_flow(&mut self, mut flow: Flow, start: Time) -> u32 {
        flow.wake = start;
        let index = self.push_flow(flow);
        self.world.reschedule(index);
        index
    }

    fn push_flow(&mut self, flow: Flow) -> u32 {
        let group = &self.world.groups[flow.group as usize];
        self.world.senders.push(Sender::new(&group.sender, Some(0)));
        self.world.receivers.push(Receiver::new(&group.receiver));
        self.world.flows.push(flow);
        (self.world.flows.len() - 1) as u32
    }

    fn add_group(&mut self, group: Group) -> u32 {
        self.world.groups.push(group);
        (self.world.groups.len() - 1) as u32
    }

    fn add_node(&mut self, delay: Duration) -> Node {
        let first = self.world.access.len() as u32;
        for to_router in [true, false] {
            self.world.access.push(Access::new(self.path.access_rate, delay));
            self.world.to_router.push(to_router);
        }
        Node { out: first, back: first + 1 }
    }
}

fn flow(group: u32, way: Way, near: Node, hops: (u16, u16)) -> Flow {
    Flow {
        group,
        way,
        round: 0,
        out: near.out,
        back: near.back,
        far_out: None,
        far_back: None,
        hops,
        pending: Time::MAX,
        wake: Time::MAX,
        began: Time::MAX,
        dropped: 0,
    }
}

/// A window in whole packets of payload.
#[allow(dead_code)]
fn packets(volume: Volume, payload: sweetspot_units::Bytes) -> u64 {
    volume.in_packets(payload)
}
