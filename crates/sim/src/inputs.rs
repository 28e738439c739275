//! Links that feed the first hop, and the servers behind them.

use sweetspot_path::Random;
use sweetspot_units::{Duration, Rate};

use crate::event::Event;
use crate::flow::Flow;
use crate::group::Group;
use crate::packet::Packet;
use crate::scheduler::Scheduler;
use crate::uplink::Uplink;
use crate::world::World;

/// A link with room for all.
#[derive(Debug)]
pub(crate) struct Input {
    uplink: Uplink,
    rate: Rate,
}

impl Input {
    pub(crate) fn new(rate: Rate) -> Input {
        Input { uplink: Uplink::default(), rate }
    }
}

/// A host that connections are opened to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Server {
    /// Propagation between it and its input link.
    pub delay: Duration,
    /// That link.
    pub input: u32,
}

impl<S: Scheduler> World<S> {
    /// A packet is at its input link.
    pub(crate) fn enter_input(&mut self, index: u32, packet: Packet) {
        let input = &mut self.inputs[index as usize];
        let wire_time = Duration::from_nanos(
            u64::from(packet.size) * 8_000_000_000 / input.rate.bits_per_second(),
        );
        let due = input.uplink.send(self.now, wire_time, Duration::ZERO);
        let uplink = Event::Input(index);
        if let Some(place) = self.transit.put(self.now, (&mut input.uplink, uplink), due, packet) {
            self.schedule_arrival(due, place, uplink);
        }
    }
}

/// A connection of `flow` begins: its server is drawn at random, if its group has some.
pub(crate) fn choose_server(flow: &mut Flow, group: &Group, servers: &[Server], rng: &mut Random) {
    let range = &group.servers[flow.direction as usize];
    let count = u64::from(range.end - range.start);
    if count == 0 {
        return;
    }
    let drawn = crate::random::whole(rng, (0, count - 1)) as u32;
    let server = servers[(range.start + drawn) as usize];
    flow.uplink.change_delay(server.delay);
    flow.delay = server.delay;
    flow.input = server.input;
}
