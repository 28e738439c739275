//! Events at the sending hosts.

use sweetspot_sizing::CongestionChoice;
use sweetspot_tcp::congestion::Algorithm;
use sweetspot_tcp::{Acknowledgement, SackBlocks};
use sweetspot_units::{Deadline, Duration, Rate, Time};

use super::{Until, World};
use crate::access_link::AccessLink;
use crate::event::Event;
use crate::hosts::{Request, Sends};
use crate::network::{
    AckHeader, AnswerHeader, BARE_SEGMENT, DataHeader, Ecn, Header, Packet, ProbeHeader,
    TrainHeader,
};
use crate::scheduler::Scheduler;

impl<S: Scheduler> World<S> {
    /// A packet for a flow's source leaves the routers at `out`.
    #[inline]
    pub(super) fn reach_source(&mut self, out: Time, packet: &Packet) {
        let wire_time = self.network.wire_times.of(packet.size);
        let flow = &mut self.hosts.flows[packet.flow as usize];
        let at = flow.downlink.arrival(out, wire_time, flow.delay);
        // Nothing is due before the flow's pending event.
        if flow.pending.is_before(at) {
            self.run_source_timers(packet.flow, Until::Before(at));
        }
        match packet.header() {
            Header::Ack(ack) => self.handle_ack(at, packet, &ack),
            Header::Probe(probe) => self.answer(at, packet, &probe),
            Header::Request(request) => self.grant(at, packet.flow, request.number),
            Header::WindowUpdate(update) => {
                let sender = &mut self.hosts.flows[packet.flow as usize].sender;
                sender.handle_window_update(update.next, update.window);
                self.transmit(packet.flow, at);
            }
            // These packets go to sinks.
            Header::Data(_) | Header::Datagram | Header::Answer(_) | Header::Train(_) => {}
        }
        let due = self.hosts.flows[packet.flow as usize].source_due();
        self.expect(packet.flow, due);
    }

    #[inline(always)]
    fn handle_ack(&mut self, at: Time, packet: &Packet, header: &AckHeader) {
        let index = packet.flow as usize;
        let blocks = header.sacks.map(|key| self.network.sacks.take(key));
        if packet.epoch != self.hosts.flows[index].epoch() {
            return;
        }
        if self.hosts.is_target(index) {
            self.observers.watch_source(index, at, &self.hosts.flows[index].sender);
            self.observers.monitors[index].note_round_trip(at, at.since(header.echo));
        }
        let ack = Acknowledgement {
            next: header.next,
            window: header.window,
            echo: header.echo,
            congestion_echo: header.congestion_echo,
            sacks: blocks.is_some(),
        };
        let blocks = blocks.as_ref().map_or(&[][..], SackBlocks::as_slice);
        self.hosts.flows[index].sender.handle_ack(at, &ack, blocks);
        self.transmit(packet.flow, at);
    }

    /// Sends the packets that a flow's sender has ready.
    #[inline(always)]
    fn transmit(&mut self, index: u32, at: Time) {
        let flow = &mut self.hosts.flows[index as usize];
        let link = AccessLink::of_source(index);
        let mut first = None;
        while let Some(segment) = flow.sender.poll_transmit(at) {
            let size = match segment.number {
                0 => BARE_SEGMENT,
                number => self.hosts.data_sizes.of(index, number),
            };
            // RFC 3168 section 6.1.5: retransmissions are not ECN-capable.
            let ecn = if segment.retransmitted { Ecn::NotCapable } else { flow.ecn };
            let header = Header::Data(DataHeader {
                number: segment.number,
                sent: at,
                acknowledged: flow.sender.acknowledged() as u32,
                window_reduced: segment.window_reduced,
            });
            let packet = Packet::new((index, flow.direction, flow.epoch()), size, ecn, header);
            let due = flow.uplink.send(at, self.network.wire_times.of(size), flow.delay);
            let transit = &mut self.network.transit;
            let put = transit.put(self.queue.now(), (&mut flow.uplink, link), due, packet);
            first = first.or(put.map(|place| (due, place)));
        }
        let done = flow.sender.is_done();
        if let Some((due, place)) = first {
            self.queue.schedule_arrival(due, place, link);
        }
        if done {
            self.finish(index, at);
        }
    }

    fn send_from_source(&mut self, at: Time, packet: Packet) {
        let flow = &mut self.hosts.flows[packet.flow as usize];
        let link = (&mut flow.uplink, AccessLink::of_source(packet.flow));
        self.network.send(&mut self.queue, link, (at, flow.delay), packet);
    }

    /// Processes expired timers of a flow's source.
    pub(super) fn run_source_timers(&mut self, flow: u32, until: Until) {
        while let Some(at) = until.admit(self.hosts.flows[flow as usize].source_due()) {
            self.run_source_timer(flow, at);
        }
    }

    #[inline(never)]
    fn run_source_timer(&mut self, index: u32, at: Time) {
        let flow = &mut self.hosts.flows[index as usize];
        if self.hosts.targets.len() > index as usize {
            self.observers.watch_source(index as usize, at, &flow.sender);
        }
        if flow.wake.has_passed(at) {
            flow.wake = Deadline::NEVER;
            if flow.began.is_none() {
                self.begin(index, at);
            }
            self.write(index, at);
        }
        self.hosts.flows[index as usize].sender.handle_timeout(at);
        self.transmit(index, at);
    }

    /// Starts a flow's application: its first connection, or a new one.
    fn begin(&mut self, index: u32, at: Time) {
        let flow = &mut self.hosts.flows[index as usize];
        let statistics = flow.sender.statistics();
        if statistics.sent > 0 {
            // The counts of the previous connection are added to the group.
            let totals = &mut self.observers.totals[flow.group as usize];
            totals.add(flow.direction, flow.sender.acknowledged(), statistics);
            flow.round += 1;
        }
        self.hosts.begin_connection(index, at);
        if self.hosts.is_target(index as usize) {
            self.begin_control(index as usize, at);
        }
    }

    /// A measured transfer's application passes written data to its sender, if it writes by itself.
    fn write(&mut self, index: u32, at: Time) {
        let Some(target) = self.hosts.targets.get_mut(index as usize) else { return };
        let Some(writer) = &mut target.writer else { return };
        let (given, next) = writer.act(at);
        let flow = &mut self.hosts.flows[index as usize];
        flow.sender.offer_up_to(given);
        flow.wake = next;
    }

    /// All data of a connection are acknowledged.
    #[cold]
    fn finish(&mut self, index: u32, at: Time) {
        let flow = &self.hosts.flows[index as usize];
        let writer = self.hosts.targets.get(index as usize).and_then(|t| t.writer.as_ref());
        if writer.is_some_and(|writer| !writer.is_complete(flow.sender.acknowledged())) {
            return;
        }
        if let Some(began) = flow.began {
            self.observers.note_finish(index, flow, began, at);
            self.hosts.end_connection(index, at);
            let next = index + 1;
            let pause = self.hosts.targets.get(next as usize).and_then(|target| target.follows);
            if let Some(pause) = pause {
                let start = Deadline::at(at + pause);
                self.hosts.flows[next as usize].wake = start;
                self.expect(next, start);
            }
        }
    }

    /// Answers a probe with the sender's own state.
    fn answer(&mut self, at: Time, packet: &Packet, probe: &ProbeHeader) {
        let index = packet.flow as usize;
        let report = self.network.reports.put(self.hosts.report(index));
        let target = &mut self.hosts.targets[index];
        let sequence = target.answers;
        target.answers = sequence.wrapping_add(1);
        let header = Header::Answer(AnswerHeader { probe: probe.sequence, sequence, report });
        let direction = self.hosts.flows[index].direction;
        let connection = (packet.flow, direction, packet.epoch);
        let answer = Packet::new(connection, packet.size, Ecn::NotCapable, header);
        self.send_from_source(at, answer);
    }

    /// Handles a request of the sink.
    fn grant(&mut self, at: Time, flow: u32, number: u64) {
        match self.hosts.targets[flow as usize].take_request(number) {
            Some(Request::Pacing(rate)) => self.set_pacing(at, flow, rate),
            Some(Request::Congestion(choice)) => self.switch_congestion(at, flow, choice),
            Some(Request::Train { id, packets, size }) => {
                for index in 0..packets {
                    let header = Header::Train(TrainHeader { train: id, index });
                    self.send_from_source(at, self.hosts.packet(flow, size, header));
                }
            }
            None => {}
        }
    }

    fn set_pacing(&mut self, at: Time, flow: u32, rate: Option<Rate>) {
        let index = flow as usize;
        let own = self.hosts.group(index).sender.algorithm;
        let sender = &mut self.hosts.flows[index].sender;
        let is_switched = sender.algorithm() == Algorithm::Bbr && own != Algorithm::Bbr;
        if is_switched && CongestionChoice::Bbr.restarts_on_pacing(sender.pacing(), rate) {
            sender.switch(Algorithm::Bbr);
        }
        sender.set_pacing(rate);
        self.transmit(flow, at);
    }

    fn switch_congestion(&mut self, at: Time, flow: u32, choice: CongestionChoice) {
        let index = flow as usize;
        let algorithm = match choice {
            CongestionChoice::Own => self.hosts.group(index).sender.algorithm,
            CongestionChoice::Reno => Algorithm::Reno,
            CongestionChoice::Bbr => Algorithm::Bbr,
        };
        let sender = &mut self.hosts.flows[index].sender;
        if self.hosts.targets[index].may_switch && sender.algorithm() != algorithm {
            sender.switch(algorithm);
            self.transmit(flow, at);
        }
    }

    /// Lets a traffic source send.
    pub(super) fn wake_source(&mut self, index: u32) {
        let source = &mut self.hosts.traffic_sources[index as usize];
        let gap = source.gap().max(Duration::from_nanos(1));
        match source.sends {
            Sends::Datagrams(flow) => self.send_datagram(flow),
            Sends::Connections(first) => {
                let index = self.hosts.idle_flow(first);
                let now = Deadline::at(self.queue.now());
                self.hosts.flows[index as usize].wake = now;
                self.expect(index, now);
            }
            Sends::SendPool(pool) => self.hosts.share_pool(pool),
        }
        self.queue.schedule(self.queue.now() + gap, Event::Source(index));
    }

    fn send_datagram(&mut self, flow: u32) {
        let group = self.hosts.flows[flow as usize].group;
        self.observers.totals[group as usize].sent += 1;
        // The time is the arrival time at the router: all packets of a source have the same way
        // there.
        self.enter_routers(&self.hosts.packet(flow, self.hosts.packet_size, Header::Datagram));
    }
}
