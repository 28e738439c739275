//! What happens at the hosts that receive data. Those of cross traffic are at the router.

use sweetspot_sizing::{ControllerConfig, Effect, KnownPath, LinuxRule, Sizing};
use sweetspot_tcp::{Acknowledgement, Arrival};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::control_loop::{ControlLoop, PROBE};
use crate::event::Event;
use crate::group::UNLIMITED;
use crate::packet::{BARE, CONGESTED, ECHO, Kind, Packet};
use crate::scheduler::Scheduler;
use crate::target::Request;
use crate::world::{PathFacts, World};

impl<S: Scheduler> World<S> {
    /// A packet leaves the routers now on its way to a flow's sink.
    #[inline(always)]
    pub(crate) fn reach_sink(&mut self, packet: &Packet) {
        let index = packet.flow as usize;
        if index < self.targets.len() || packet.kind.bare() == Kind::Datagram {
            return self.reach_far_sink(self.now, packet);
        }
        if packet.epoch == self.flows[index].epoch() {
            let (_, ack) = self.receive(self.now, packet);
            match ack {
                Some(ack) => self.send_from_sink(self.now, packet.flow, &ack),
                None => {
                    let due = self.sink_due(index);
                    self.expect(packet.flow, due);
                }
            }
        }
    }

    /// The same at `out` for what nobody at the routers waits for: a target's, whose sink lies
    /// behind a link of its own, and datagrams.
    #[inline(never)]
    pub(crate) fn reach_far_sink(&mut self, out: Time, packet: &Packet) {
        let index = packet.flow as usize;
        if packet.kind.bare() == Kind::Datagram {
            let group = self.flows[index].group;
            self.groups[group as usize].totals.delivered += 1;
            return;
        }
        let wire_time = self.wire.of(packet.size);
        let target = &mut self.targets[index];
        let at = target.downlink.arrival(out, wire_time, target.far_delay);
        self.run_sink_timers(packet.flow, at, false);
        self.watch_sink(index, at);
        match packet.kind.bare() {
            Kind::Data => {
                let (delivered, ack) = self.receive(at, packet);
                if self.is_controlled(index) {
                    self.inform_controller(index, at, packet, delivered);
                    self.work_for_controller(index, at);
                }
                if let Some(ack) = ack {
                    self.send_from_sink(at, packet.flow, &ack);
                }
            }
            Kind::Answer => {
                if let Some(report) = self.reports.take(packet)
                    && let Some(control_loop) = &mut self.targets[index].control_loop
                {
                    control_loop.handle_answer(at, packet, report);
                    self.work_for_controller(index, at);
                }
            }
            _ => {
                if let Some(control_loop) = &mut self.targets[index].control_loop {
                    control_loop.handle_train_packet(at, packet);
                    self.work_for_controller(index, at);
                }
            }
        }
        let due = self.sink_due(index);
        self.expect(packet.flow, due);
    }

    /// Whether a control loop listens to what arrives.
    #[inline]
    fn is_controlled(&self, index: usize) -> bool {
        self.targets[index].control_loop.as_ref().is_some_and(ControlLoop::listens)
    }

    #[inline(always)]
    fn receive(&mut self, at: Time, packet: &Packet) -> (u64, Option<Acknowledgement>) {
        let arrival = Arrival {
            number: packet.number,
            sent: packet.sent,
            congested: packet.extra & CONGESTED != 0,
            window_reduced: packet.extra & ECHO != 0,
        };
        let received = self.receivers[packet.flow as usize].handle_data(at, &arrival);
        (received.delivered, received.ack)
    }

    #[inline(always)]
    fn send_from_sink(&mut self, at: Time, flow: u32, ack: &Acknowledgement) {
        let index = flow as usize;
        let mut extra = 0;
        if ack.sacks {
            extra = self.sacks.put(self.receivers[index].sack_blocks());
        }
        if ack.congestion_echo {
            extra |= ECHO;
        }
        let packet = Packet {
            flow,
            size: BARE,
            kind: Kind::Ack.on(self.flows[index].direction),
            epoch: self.flows[index].epoch(),
            number: ack.next,
            sent: ack.echo,
            window: ack.window,
            extra,
        };
        if index < self.targets.len() {
            if self.is_controlled(index) {
                self.targets[index].acked.push_back((ack.next, at));
            }
            self.send_from_far_sink(at, packet);
        } else {
            self.enter_routers(&packet);
        }
    }

    fn send_from_far_sink(&mut self, at: Time, packet: Packet) {
        let wire_time = self.wire.of(packet.size);
        let target = &mut self.targets[packet.flow as usize];
        let due = target.uplink.send(at, wire_time, target.far_delay);
        let uplink = Event::FarFeed(packet.flow);
        if let Some(place) = self.transit.put(self.now, (&mut target.uplink, uplink), due, packet) {
            self.schedule_arrival(due, place, uplink);
        }
    }

    /// When something is due at a flow's sink.
    #[inline]
    pub(crate) fn sink_due(&self, index: usize) -> Time {
        let receiver = self.receivers[index].poll_timeout().unwrap_or(Time::MAX);
        match self.targets.get(index) {
            Some(target) => receiver.min(target.control_due),
            None => receiver,
        }
    }

    /// Lets the sink's timers expire that do so before `until`, or, if so wanted, at it.
    pub(crate) fn run_sink_timers(&mut self, flow: u32, until: Time, inclusive: bool) {
        loop {
            let due = self.sink_due(flow as usize);
            if due > until || (due == until && !inclusive) {
                return;
            }
            self.run_sink_timer(flow, due);
        }
    }

    fn run_sink_timer(&mut self, flow: u32, at: Time) {
        let index = flow as usize;
        if let Some(ack) = self.receivers[index].handle_timeout(at) {
            self.send_from_sink(at, flow, &ack);
        }
        if index >= self.targets.len() {
            return;
        }
        self.watch_sink(index, at);
        let advertised = self.payload(index) * self.receivers[index].advertised();
        let Some(control_loop) = &mut self.targets[index].control_loop else { return };
        if control_loop.poll_timeout() <= at {
            control_loop.handle_timeout(at, advertised);
        }
        while let Some(number) = self.targets[index].lost_requests.pop() {
            self.send_small(index, at, Kind::Request, number);
        }
        self.work_for_controller(index, at);
    }

    fn ask_source(&mut self, index: usize, at: Time, request: Request) {
        let target = &mut self.targets[index];
        let number = target.next_request;
        target.next_request += 1;
        target.requests.push((number, request));
        self.send_small(index, at, Kind::Request, number);
    }

    fn send_small(&mut self, index: usize, at: Time, kind: Kind, number: u64) {
        let packet = Packet {
            flow: index as u32,
            size: PROBE,
            kind: kind.on(self.flows[index].direction),
            epoch: self.flows[index].epoch(),
            number,
            sent: at,
            window: 0,
            extra: 0,
        };
        self.send_from_far_sink(at, packet);
    }

    /// Tells the control loop what a data packet brought.
    fn inform_controller(&mut self, index: usize, at: Time, packet: &Packet, delivered: u64) {
        let payload = self.payload(index);
        let out_of_order = self.receivers[index].out_of_order();
        let target = &mut self.targets[index];
        let Some(control_loop) = &mut target.control_loop else { return };
        // The packet tells which ACK its sender had seen last; when was that one sent?
        let seen = u64::from(packet.window) + 1;
        let mut sent = None;
        while let Some((next, at)) = target.acked.front().copied().filter(|acked| acked.0 <= seen) {
            sent = (next == seen).then_some(at);
            target.acked.pop_front();
        }
        if let Some(sent) = sent {
            control_loop.handle_round_trip(at.since(sent));
        }
        control_loop.handle_out_of_order(out_of_order);
        // The SYN carries no payload.
        let bytes = payload * (delivered - u64::from(packet.number == 0 && delivered > 0));
        if bytes > Bytes::ZERO {
            control_loop.handle_data(at, bytes);
        }
    }

    /// Does what a target's control loop wants done.
    fn work_for_controller(&mut self, index: usize, at: Time) {
        let payload = self.payload(index);
        loop {
            let target = &mut self.targets[index];
            let Some(control_loop) = &mut target.control_loop else { return };
            let Some(effect) = control_loop.poll_effect() else {
                target.control_due = control_loop.poll_timeout();
                return;
            };
            match effect {
                Effect::Window(limit) => {
                    let group = &self.groups[self.flows[index].group as usize];
                    let open = group.receiver.window;
                    let packets =
                        limit.map_or(open, |bytes| group.window_in_packets(bytes).min(open));
                    self.receivers[index].set_window(packets.clamp(1, UNLIMITED));
                }
                Effect::Pacing(rate) => {
                    // Asked for in payload, kept on the wire.
                    let wire = f64::from(self.packet) / payload.as_f64();
                    let rate = rate.map(|rate| rate.scaled(wire));
                    self.ask_source(index, at, Request::Pacing(rate));
                }
                Effect::Train { id, request } => {
                    let size = request.size.get().clamp(u64::from(BARE), 65_000) as u16;
                    let packets = request.packets;
                    self.ask_source(index, at, Request::Train { id, packets, size });
                }
                Effect::Probe { sequence } => {
                    self.send_small(index, at, Kind::Probe, u64::from(sequence));
                }
                Effect::Congestion(choice) => {
                    self.ask_source(index, at, Request::Congestion(choice));
                }
                Effect::Event(_) | Effect::ProbesBlocked => {}
            }
        }
    }

    /// A target begins: so does its control loop.
    pub(crate) fn begin_control(&mut self, index: usize, at: Time) {
        let payload = self.payload(index);
        let sizing = match self.targets[index].sizing {
            // The simulated kernel's own rule.
            Sizing::Kernel => Sizing::Linux(LinuxRule::NEWEST),
            sizing => sizing,
        };
        let group = &self.groups[self.flows[index].group as usize];
        let linux = group.linux;
        let config = ControllerConfig {
            mss: payload,
            packet: Bytes::new(u64::from(self.packet)),
            max_window: payload * group.receiver.window,
            size: self.targets[index].size,
            path: Some(self.known_path(at)),
        };
        let (controller, clamps) = match self.targets[index].maker.take() {
            Some(make) => (make(&config), false),
            None => {
                // Whatever a sizing may lack is known here.
                let Ok(controller) = sizing.controller(&config) else { return };
                (controller, sizing.clamps_autotuning())
            }
        };
        let autotuning = (clamps && linux)
            .then(|| Sizing::Linux(LinuxRule::NEWEST).controller(&config).ok())
            .flatten();
        let control_loop = ControlLoop::new(controller, autotuning, at);
        self.targets[index].control_due = control_loop.poll_timeout();
        self.targets[index].control_loop = Some(control_loop);
        self.run_sink_timers(index as u32, at, true);
    }

    /// The path as it is known at `now`, before a transfer starts: A and T_e are averages since
    /// the watch began.
    fn known_path(&mut self, now: Time) -> KnownPath {
        let PathFacts { narrow, known, packet_time, before } = self.path;
        let Some((since, forward, backward)) = before.filter(|(since, ..)| *since < now) else {
            return KnownPath {
                available: Some(known.rate),
                exogenous_rtt: Some(known.rtt),
                ..known
            };
        };
        let seconds = now.since(since).as_secs_f64();
        let half = self.hops.len() / 2;
        let mut queued = 0.0;
        for (hop, earlier) in [(narrow, forward), (half + narrow, backward)] {
            let waited = self.hops[hop].totals(now).waits.byte_time - earlier.waits.byte_time;
            queued += waited as f64 / 1e9 * 8.0 / known.rate.as_f64() / seconds;
        }
        let sent = self.hops[narrow].totals(now).sent_bits - forward.sent_bits;
        let used = Rate::from_f64(sent as f64 / seconds);
        KnownPath {
            available: Some(known.rate.saturating_sub(used)),
            exogenous_rtt: Some(known.rtt + Duration::from_secs_f64(queued) + packet_time),
            ..known
        }
    }

    /// Interest at a target's sink if it is about to pass the time to do so.
    #[inline]
    pub(crate) fn watch_sink(&mut self, index: usize, at: Time) {
        let monitor = &mut self.targets[index].monitor;
        while self.observations.get(monitor.next_sink).is_some_and(|time| *time < at) {
            monitor.next_sink += 1;
            monitor.windows.push_back(self.receivers[index].advertised());
        }
    }
}
