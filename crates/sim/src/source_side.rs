//! What happens at the hosts that send data.

use sweetspot_sizing::{CongestionChoice, CongestionState, SenderReport};
use sweetspot_tcp::congestion::Algorithm;
use sweetspot_tcp::{Acknowledgement, Receiver, SackBlocks, Sender, SenderConfig};
use sweetspot_units::{Bytes, Duration, Time};

use crate::event::Event;
use crate::flow::{Direction, Flow};
use crate::group::Group;
use crate::inputs::choose_server;
use crate::packet::{BARE, CAPABLE, ECHO, Kind, Packet};
use crate::random;
use crate::scheduler::Scheduler;
use crate::source::Sends;
use crate::target::{Request, SourceView};
use crate::world::World;

impl<S: Scheduler> World<S> {
    /// A packet leaves the routers at `out` on its way to a flow's source.
    #[inline]
    pub(crate) fn reach_source(&mut self, out: Time, packet: &Packet) {
        let wire_time = self.wire.of(packet.size);
        let flow = &mut self.flows[packet.flow as usize];
        let at = flow.downlink.arrival(out, wire_time, flow.delay);
        // Nothing is due before the flow's pending event.
        if flow.pending < at {
            self.run_source_timers(packet.flow, at, false);
        }
        match packet.kind.bare() {
            Kind::Ack => self.hear_ack(at, packet),
            Kind::Probe => self.answer(at, packet),
            _ => self.grant(at, packet.flow, packet.number),
        }
        let due = self.flows[packet.flow as usize].source_due();
        self.expect(packet.flow, due);
    }

    #[inline(always)]
    fn hear_ack(&mut self, at: Time, packet: &Packet) {
        let index = packet.flow as usize;
        let blocks = self.sacks.take(packet);
        if packet.epoch != self.flows[index].epoch() {
            return;
        }
        if index < self.targets.len() {
            self.watch_source(index, at);
            self.targets[index].monitor.note_round_trip(at, at.since(packet.sent));
        }
        let ack = Acknowledgement {
            next: packet.number,
            window: packet.window,
            echo: packet.sent,
            congestion_echo: packet.extra & ECHO != 0,
            sacks: blocks.is_some(),
        };
        let blocks = blocks.as_ref().map_or(&[][..], SackBlocks::as_slice);
        self.flows[index].sender.handle_ack(at, &ack, blocks);
        self.pump(packet.flow, at);
    }

    /// Sends what a flow's sender has to send now.
    #[inline(always)]
    fn pump(&mut self, index: u32, at: Time) {
        let flow = &mut self.flows[index as usize];
        let uplink = Event::Uplink(index);
        let mut first = None;
        while let Some(segment) = flow.sender.poll_transmit(at) {
            let size = if segment.number == 0 { BARE } else { self.packet };
            // RFC 3168 section 6.1.5: retransmissions are not marked.
            let mut extra = if segment.retransmitted { 0 } else { flow.marks };
            if segment.window_reduced {
                extra |= ECHO;
            }
            let packet = Packet {
                flow: index,
                size,
                kind: Kind::Data.on(flow.direction),
                epoch: flow.epoch(),
                number: segment.number,
                sent: at,
                window: flow.sender.acknowledged() as u32,
                extra,
            };
            let due = flow.uplink.send(at, self.wire.of(size), flow.delay);
            let put = self.transit.put(self.now, (&mut flow.uplink, uplink), due, packet);
            first = first.or(put.map(|place| (due, place)));
        }
        let done = flow.sender.is_done();
        if let Some((due, place)) = first {
            self.schedule_arrival(due, place, uplink);
        }
        if done {
            self.finish(index, at);
        }
    }

    fn send_from_source(&mut self, at: Time, packet: Packet) {
        let wire_time = self.wire.of(packet.size);
        let flow = &mut self.flows[packet.flow as usize];
        let due = flow.uplink.send(at, wire_time, flow.delay);
        let uplink = Event::Uplink(packet.flow);
        if let Some(place) = self.transit.put(self.now, (&mut flow.uplink, uplink), due, packet) {
            self.schedule_arrival(due, place, uplink);
        }
    }

    /// Lets the source's timers expire that do so before `until`, or, if so wanted, at it.
    pub(crate) fn run_source_timers(&mut self, flow: u32, until: Time, inclusive: bool) {
        loop {
            let due = self.flows[flow as usize].source_due();
            if due > until || (due == until && !inclusive) {
                return;
            }
            self.run_source_timer(flow, due);
        }
    }

    #[inline(never)]
    fn run_source_timer(&mut self, flow: u32, at: Time) {
        let index = flow as usize;
        if index < self.targets.len() {
            self.watch_source(index, at);
        }
        if self.flows[index].wake <= at {
            self.flows[index].wake = Time::MAX;
            self.begin(flow, at);
        }
        self.flows[index].sender.handle_timeout(at);
        self.pump(flow, at);
    }

    /// A flow's application begins: its first connection, or a new one.
    fn begin(&mut self, index: u32, at: Time) {
        let flow = &mut self.flows[index as usize];
        let group = &mut self.groups[flow.group as usize];
        let sender = &mut flow.sender;
        if sender.statistics().sent > 0 {
            // What the connection before did is kept with the group.
            group.totals.add(sender.acknowledged(), sender.statistics());
            flow.round += 1;
        }
        flow.began = at;
        let mut rng = random::stream(self.seed, 1, u64::from(index), u64::from(flow.round));
        let mut config = group.sender;
        config.clock_phase = config.clock.scaled(rng.unit());
        config.seed = rng.bits();
        *sender = Sender::new(&config, group.size(&mut rng));
        choose_server(flow, group, &self.servers, &mut rng);
        self.receivers[index as usize] = Receiver::new(&group.receiver);
        if (index as usize) < self.targets.len() {
            self.begin_control(index as usize, at);
        }
    }

    /// A connection's data is all acknowledged.
    #[cold]
    fn finish(&mut self, index: u32, at: Time) {
        let flow = &mut self.flows[index as usize];
        if flow.began == Time::MAX {
            return;
        }
        let group = &mut self.groups[flow.group as usize];
        group.totals.completed += 1;
        group.totals.completion += u128::from(at.since(flow.began).as_nanos());
        if let Some(recorder) = &mut self.recorder {
            recorder.note_finish(index, flow, at);
        }
        flow.began = Time::MAX;
        let mut rng = random::stream(self.seed, 2, u64::from(index), u64::from(flow.round));
        match group.pause(&mut rng) {
            Some(pause) => flow.wake = at + pause,
            None => group.idle.push(index),
        }
    }

    /// A probe arrived: its answer tells what the sender knows of itself.
    fn answer(&mut self, at: Time, probe: &Packet) {
        let index = probe.flow as usize;
        let sender = &self.flows[index].sender;
        let payload = self.groups[self.flows[index].group as usize].payload;
        let ssthresh = Some(sender.ssthresh()).filter(|packets| packets.is_finite());
        let report = SenderReport {
            retransmitted: sender.statistics().retransmitted,
            cwnd: payload.scaled(sender.cwnd()),
            ssthresh: ssthresh.map(|packets| payload.scaled(packets)),
            in_flight: payload * sender.outstanding(),
            state: state(sender.repairs()),
            ..SenderReport::default()
        };
        let target = &mut self.targets[index];
        let number = target.answers;
        target.answers += 1;
        let extra = self.reports.put(report);
        let kind = Kind::Answer.on(self.flows[index].direction);
        let window = probe.number as u32;
        let answer = Packet { kind, number, extra, window, ..*probe };
        self.send_from_source(at, answer);
    }

    /// A request of the sink arrived.
    fn grant(&mut self, at: Time, flow: u32, number: u64) {
        let index = flow as usize;
        let requests = &mut self.targets[index].requests;
        let Some(place) = requests.iter().position(|(n, _)| *n == number) else { return };
        match requests.remove(place).1 {
            Request::Pacing(rate) => {
                self.flows[index].sender.set_pacing(rate);
                self.pump(flow, at);
            }
            Request::Congestion(choice) => {
                let algorithm = match choice {
                    CongestionChoice::Own => None,
                    CongestionChoice::Reno => Some(Algorithm::Reno),
                    CongestionChoice::Bbr => Some(Algorithm::Bbr),
                };
                let own = self.groups[self.flows[index].group as usize].sender.algorithm;
                let sender = &mut self.flows[index].sender;
                let algorithm = algorithm.unwrap_or(own);
                if self.targets[index].may_switch && sender.algorithm() != algorithm {
                    sender.switch(algorithm);
                    self.pump(flow, at);
                }
            }
            Request::Train { id, packets, size } => {
                let epoch = self.flows[index].epoch();
                let kind = Kind::Train.on(self.flows[index].direction);
                for number in 0..packets {
                    let packet = Packet {
                        flow,
                        size,
                        kind,
                        epoch,
                        number: u64::from(number),
                        sent: at,
                        window: id,
                        extra: 0,
                    };
                    self.send_from_source(at, packet);
                }
            }
        }
    }

    /// Looks at a target's source if it is about to pass the time to do so.
    #[inline]
    pub(crate) fn watch_source(&mut self, index: usize, at: Time) {
        let monitor = &mut self.targets[index].monitor;
        while self.observations.get(monitor.next_source).is_some_and(|time| *time < at) {
            let sender = &self.flows[index].sender;
            monitor.next_source += 1;
            monitor.sources.push_back(SourceView {
                acknowledged: sender.acknowledged(),
                statistics: sender.statistics(),
                cwnd: sender.cwnd(),
                ssthresh: sender.ssthresh(),
                rtt: monitor.last_rtt,
            });
        }
    }

    /// A source that asks nobody has something to send.
    pub(crate) fn wake_source(&mut self, index: u32) {
        let source = &mut self.sources[index as usize];
        let gap = source.gap().max(Duration::from_nanos(1));
        match source.sends {
            Sends::Datagrams(flow) => {
                self.groups[self.flows[flow as usize].group as usize].totals.sent += 1;
                let packet = Packet {
                    flow,
                    size: self.packet,
                    kind: Kind::Datagram.on(self.flows[flow as usize].direction),
                    epoch: 0,
                    number: 0,
                    sent: self.now,
                    window: 0,
                    extra: 0,
                };
                // Its time is that at the router: the way there is the same for all it sends.
                self.enter_routers(&packet);
            }
            Sends::Connections(first) => self.open_connection(first),
        }
        self.schedule(self.now + gap, Event::Source(index));
    }

    /// One more connection like those of flow `first`, on an idle flow if there is one.
    fn open_connection(&mut self, first: u32) {
        let Flow { group, direction, hops, delay, .. } = self.flows[first as usize];
        let index = match self.groups[group as usize].idle.pop() {
            Some(index) => index,
            None => self.push_flow(group, direction, hops, delay),
        };
        self.flows[index as usize].wake = self.now;
        self.expect(index, self.now);
    }

    /// A new flow, which has done nothing yet.
    pub(crate) fn push_flow(
        &mut self,
        group: u32,
        direction: Direction,
        hops: (u16, u16),
        delay: Duration,
    ) -> u32 {
        let Group { sender, receiver, ecn, .. } = &self.groups[group as usize];
        // Until it begins, a connection that wants nothing, not even to send a SYN at a pace.
        let idle = SenderConfig { algorithm: Algorithm::Reno, pacing: false, ..*sender };
        let mut flow = Flow::new(Sender::new(&idle, Some(0)), group, direction, hops, delay);
        flow.marks = if *ecn { CAPABLE } else { 0 };
        self.receivers.push(Receiver::new(receiver));
        self.flows.push(flow);
        (self.flows.len() - 1) as u32
    }

    /// Payload of a flow's full packet.
    pub(crate) fn payload(&self, index: usize) -> Bytes {
        self.groups[self.flows[index].group as usize].payload
    }
}

/// Linux's names for what a sender repairs.
fn state((recovers, after_timeout): (bool, bool)) -> CongestionState {
    match (recovers, after_timeout) {
        (true, _) => CongestionState::Recovery,
        (false, true) => CongestionState::Loss,
        (false, false) => CongestionState::Open,
    }
}
