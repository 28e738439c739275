//! Events at routers.

use sweetspot_units::Time;

use super::{CROWD, World};
use crate::event::{Event, Place};
use crate::network::{Arrived, Direction, Header, HopResult, Packet, PacketKind};
use crate::scheduler::Scheduler;

impl<S: Scheduler> World<S> {
    /// A packet arrives over an access link.
    #[inline(always)]
    pub(super) fn arrive(&mut self, place: Place) {
        let Arrived { packet, link, next } = self.network.transit.take(place);
        if let Some((due, place)) = next {
            self.queue.schedule_arrival(due, place, link);
        }
        if self.network.has_inputs()
            && let Some(flow) = link.source()
            && let Some(input) = self.hosts.flows[flow as usize].input
        {
            return self.network.enter_input(&mut self.queue, input, &packet);
        }
        self.enter_routers(&packet);
    }

    /// A packet arrives at its first router.
    #[inline(always)]
    pub(super) fn enter_routers(&mut self, packet: &Packet) {
        let direction = packet.direction();
        let hop = match self.network.hops_each_way() {
            1 => 0,
            _ => self.hosts.flows[packet.flow as usize].entry(direction),
        };
        self.enter_hop(direction, hop, packet);
    }

    #[inline(always)]
    fn enter_hop(&mut self, direction: Direction, hop: u16, packet: &Packet) {
        let index = self.network.index(direction, hop);
        if !self.network.hop(index).is_drop_tail() {
            return self.enter_managed(index, packet);
        }
        if self.is_bound_for_host(direction, hop, packet) {
            return match self.network.pass(self.queue.now(), index, packet) {
                HopResult::Leaves(out) => self.reach_host(out, packet),
                HopResult::HeldBack => {}
                HopResult::Dropped => self.drop_packet(packet),
            };
        }
        if !self.network.enter(&mut self.queue, index, packet) {
            self.drop_packet(packet);
        }
    }

    #[inline(never)]
    fn enter_managed(&mut self, index: usize, packet: &Packet) {
        if let Some(packet) = self.network.enter_managed(&mut self.queue, index, packet) {
            self.drop_packet(&packet);
        }
    }

    /// Whether only the packet's own host is behind this hop.
    #[inline]
    fn is_bound_for_host(&self, direction: Direction, hop: u16, packet: &Packet) -> bool {
        // Cross traffic has its sinks at the last router, measured transfers do not; datagrams get no answer.
        let leaves = !packet.goes_to_sink()
            || self.hosts.is_target(packet.flow as usize)
            || packet.kind() == PacketKind::Datagram;
        leaves
            && (self.network.hops_each_way() == 1
                || self.hosts.flows[packet.flow as usize].after(direction, hop).is_none())
    }

    #[inline(always)]
    pub(super) fn leave_hop(&mut self, index: usize) {
        let left = self.network.leave_hop(&mut self.queue, index);
        if self.hosts.flows.len() >= CROWD && self.network.wants_read_ahead(index) {
            self.read_ahead(index);
        }
        while let Some(victim) = self.network.hop(index).poll_victim() {
            self.drop_packet(&victim);
        }
        let Some(packet) = left else { return };
        if self.network.hops_each_way() > 1 {
            let direction = packet.direction();
            let hop = self.network.hop_at(direction, index);
            if let Some(next) = self.hosts.flows[packet.flow as usize].after(direction, hop) {
                return self.enter_hop(direction, next, &packet);
            }
        }
        self.leave_routers(&packet);
    }

    #[inline(always)]
    fn leave_routers(&mut self, packet: &Packet) {
        if packet.goes_to_sink() {
            self.reach_sink(packet);
        } else {
            self.reach_source(self.queue.now(), packet);
        }
    }

    /// A packet leaves the last router at `out`, which may be in the future: only its host is behind.
    #[inline]
    fn reach_host(&mut self, out: Time, packet: &Packet) {
        if packet.goes_to_sink() {
            self.reach_far_sink(out, packet);
        } else {
            self.reach_source(out, packet);
        }
    }

    #[cold]
    fn drop_packet(&mut self, packet: &Packet) {
        match packet.header() {
            Header::Ack(ack) => drop(ack.sacks.map(|key| self.network.sacks.take(key))),
            Header::Answer(answer) => drop(self.network.reports.take(answer.report)),
            Header::Data(_) | Header::Datagram => {
                let flow = &self.hosts.flows[packet.flow as usize];
                self.observers.note_drop(packet.flow, flow, self.queue.now());
            }
            // Requests go over the connection, which retransmits lost ones.
            Header::Request(request) => {
                self.hosts.targets[packet.flow as usize].lost_requests.push(request.number);
            }
            Header::Probe(_) | Header::Train(_) | Header::WindowUpdate(_) => {}
        }
    }

    /// Passes on packets held back for a count that is now past. Packets that leave the routers after the next count are
    /// still held.
    pub(crate) fn look_ahead(&mut self) {
        self.network.set_horizon(self.observers.next_count(self.queue.now()));
        for index in 0..2 * self.network.hops_each_way() {
            while let Some((out, packet)) = self.network.poll_held_back(index) {
                self.reach_host(out, &packet);
            }
        }
    }

    /// Prefetches the flows of packets that leave a hop soon, in batches: memory answers the reads together.
    #[inline(never)]
    fn read_ahead(&mut self, index: usize) {
        self.read_near();
        for packet in self.network.upcoming(index) {
            self.hosts.read_ahead(packet.flow);
        }
    }

    /// Prefetches the data of events that happen soon.
    #[inline(never)]
    fn read_near(&mut self) {
        while let Some(event) = self.queue.poll_near() {
            match event {
                Event::Arrival(place) => self.network.transit.read_ahead(place),
                Event::Flow(flow) => self.hosts.read_ahead(flow),
                Event::Source(_) | Event::Observe(_) => {}
            }
        }
    }
}
