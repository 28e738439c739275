//! Events at the receiving hosts. The sinks of cross traffic are at the router.

use sweetspot_sizing::{ControllerConfig, Effect, EventKind, LinuxRule, Sizing};
use sweetspot_tcp::{Acknowledgement, Arrival};
use sweetspot_units::{Bytes, Deadline, Time};

use super::{Until, World};
use crate::access_link::AccessLink;
use crate::hosts::{ControlLoop, PROBE, Request, UNLIMITED};
use crate::network::{
    AckHeader, BARE_SEGMENT, DataHeader, Header, Packet, PacketKind, ProbeHeader, RequestHeader,
    WindowUpdateHeader,
};
use crate::scheduler::Scheduler;

impl<S: Scheduler> World<S> {
    /// A packet for a flow's sink leaves the routers now.
    #[inline(always)]
    pub(super) fn reach_sink(&mut self, packet: &Packet) {
        let index = packet.flow as usize;
        let now = self.queue.now();
        match packet.header() {
            Header::Data(data) if !self.hosts.is_target(index) => {
                if packet.epoch == self.hosts.flows[index].epoch() {
                    let (_, ack) = self.receive(now, packet, &data);
                    match ack {
                        Some(ack) => self.send_ack(now, packet.flow, &ack),
                        None => self.expect(packet.flow, self.hosts.sink_due(index)),
                    }
                }
            }
            _ => self.reach_far_sink(now, packet),
        }
    }

    /// A packet leaves the routers at `out` and has no sink there: it is a datagram, or belongs to a measured transfer with a
    /// sink behind its own link.
    #[inline(never)]
    pub(super) fn reach_far_sink(&mut self, out: Time, packet: &Packet) {
        let index = packet.flow as usize;
        if packet.kind() == PacketKind::Datagram {
            let flow = &self.hosts.flows[index];
            self.observers.totals[flow.group as usize].deliver(flow.direction, 1);
            return;
        }
        let wire_time = self.network.wire_times.of(packet.size);
        let target = &mut self.hosts.targets[index];
        let at = target.downlink.arrival(out, wire_time, target.far_delay);
        self.run_sink_timers(packet.flow, Until::Before(at));
        self.observers.watch_sink(index, at, &self.hosts.receivers[index]);
        match packet.header() {
            Header::Data(data) => self.handle_data(at, packet, &data),
            Header::Answer(answer) => {
                let report = self.network.reports.take(answer.report);
                if let Some(control_loop) = &mut self.hosts.targets[index].control_loop {
                    control_loop.handle_answer(at, &answer, report);
                    self.work_for_controller(index, at);
                }
            }
            Header::Train(train) => {
                if let Some(control_loop) = &mut self.hosts.targets[index].control_loop {
                    control_loop.handle_train_packet(at, &train, Bytes::new(packet.size.into()));
                    self.work_for_controller(index, at);
                }
            }
            // These packets go to sources.
            Header::Datagram
            | Header::Ack(_)
            | Header::Probe(_)
            | Header::Request(_)
            | Header::WindowUpdate(_) => {}
        }
        self.expect(packet.flow, self.hosts.sink_due(index));
    }

    /// Handles a data packet of a measured transfer.
    #[inline(always)]
    fn handle_data(&mut self, at: Time, packet: &Packet, data: &DataHeader) {
        let index = packet.flow as usize;
        if self.hosts.targets[index].reader.is_some() {
            return self.handle_data_slowly(at, packet, data);
        }
        let (delivered, ack) = self.receive(at, packet, data);
        if self.hosts.is_controlled(index) {
            self.inform_controller(index, at, data, delivered);
            self.work_for_controller(index, at);
        }
        if let Some(ack) = ack {
            self.send_ack(at, packet.flow, &ack);
        }
    }

    /// Handles a data packet for an application that does not read at once. The ACK's window is the part that unread data leave
    /// free.
    #[cold]
    fn handle_data_slowly(&mut self, at: Time, packet: &Packet, data: &DataHeader) {
        let index = packet.flow as usize;
        let edge = self.hosts.receivers[index].right_edge();
        let (delivered, ack) = self.receive(at, packet, data);
        let bytes =
            self.hosts.payload(index) * (delivered - u64::from(data.number == 0 && delivered > 0));
        let Some(reader) = &mut self.hosts.targets[index].reader else { return };
        let read = reader.handle_arrival(at, bytes);
        if self.hosts.is_controlled(index) {
            self.time_round_trip(index, at, data);
        }
        self.hand_to_application(index, at, read);
        if let Some(ack) = ack {
            let window = self.hosts.receivers[index].readvertise(edge);
            self.send_ack(at, packet.flow, &Acknowledgement { window, ..ack });
        }
    }

    /// Records that the application read `bytes`, and adjusts the window.
    fn hand_to_application(&mut self, index: usize, at: Time, bytes: Bytes) {
        let target = &mut self.hosts.targets[index];
        let unread = target.reader.as_ref().map_or(Bytes::ZERO, |reader| reader.unread);
        if let Some(control_loop) = &mut target.control_loop {
            control_loop.handle_data(at, bytes, unread);
        }
        self.work_for_controller(index, at);
        self.open_window(index);
    }

    /// Sets the window to the part that unread data leave free.
    fn open_window(&mut self, index: usize) {
        if let Some(reader) = &self.hosts.targets[index].reader {
            self.hosts.receivers[index].set_free(reader.open());
        }
    }

    /// The application reads by its own schedule. A window that was closed is advertised once it has grown enough (RFC 9293
    /// section 3.8.6.2.2: half the buffer or two full segments).
    fn read(&mut self, index: usize, at: Time) {
        let Some(reader) = &mut self.hosts.targets[index].reader else { return };
        let bytes = reader.read(at);
        let worth = 2.min(reader.window.div_ceil(2));
        self.hand_to_application(index, at, bytes);
        let receiver = &mut self.hosts.receivers[index];
        if receiver.advertised() == 0
            && let Some((next, window)) = receiver.update_window(worth)
        {
            self.send_small(index, at, Header::WindowUpdate(WindowUpdateHeader { next, window }));
        }
    }

    #[inline(always)]
    fn receive(
        &mut self,
        at: Time,
        packet: &Packet,
        data: &DataHeader,
    ) -> (u64, Option<Acknowledgement>) {
        let arrival = Arrival {
            number: data.number,
            sent: data.sent,
            congested: packet.is_marked(),
            window_reduced: data.window_reduced,
        };
        let received = self.hosts.receivers[packet.flow as usize].handle_data(at, &arrival);
        (received.delivered, received.ack)
    }

    #[inline(always)]
    fn send_ack(&mut self, at: Time, flow: u32, ack: &Acknowledgement) {
        let index = flow as usize;
        let blocks = || self.hosts.receivers[index].sack_blocks();
        let header = Header::Ack(AckHeader {
            next: ack.next,
            echo: ack.echo,
            window: ack.window,
            congestion_echo: ack.congestion_echo,
            sacks: ack.sacks.then(|| self.network.sacks.put(blocks())),
        });
        let packet = self.hosts.packet(flow, self.hosts.group(index).ack_size, header);
        if self.hosts.is_target(index) {
            if self.hosts.is_controlled(index) {
                self.hosts.targets[index].note_ack(ack.next, at);
            }
            self.send_from_sink(at, packet);
        } else {
            self.enter_routers(&packet);
        }
    }

    /// Sends a packet from a measured transfer's sink.
    fn send_from_sink(&mut self, at: Time, packet: Packet) {
        let target = &mut self.hosts.targets[packet.flow as usize];
        let link = (&mut target.uplink, AccessLink::of_sink(packet.flow));
        self.network.send(&mut self.queue, link, (at, target.far_delay), packet);
    }

    /// Processes expired timers of a flow's sink.
    pub(super) fn run_sink_timers(&mut self, flow: u32, until: Until) {
        while let Some(at) = until.admit(self.hosts.sink_due(flow as usize)) {
            self.run_sink_timer(flow, at);
        }
    }

    fn run_sink_timer(&mut self, flow: u32, at: Time) {
        let index = flow as usize;
        if let Some(ack) = self.hosts.receivers[index].handle_timeout(at) {
            self.send_ack(at, flow, &ack);
        }
        if !self.hosts.is_target(index) {
            return;
        }
        self.observers.watch_sink(index, at, &self.hosts.receivers[index]);
        if self.hosts.targets[index].reader.as_ref().is_some_and(|reader| reader.due.has_passed(at))
        {
            self.read(index, at);
        }
        let advertised = self.hosts.payload(index) * self.hosts.receivers[index].advertised();
        let Some(control_loop) = &mut self.hosts.targets[index].control_loop else { return };
        if control_loop.poll_timeout().has_passed(at) {
            control_loop.handle_timeout(at, advertised);
        }
        while let Some(number) = self.hosts.targets[index].lost_requests.pop() {
            self.send_small(index, at, Header::Request(RequestHeader { number }));
        }
        self.work_for_controller(index, at);
    }

    fn ask_source(&mut self, index: usize, at: Time, request: Request) {
        let number = self.hosts.targets[index].push_request(request);
        self.send_small(index, at, Header::Request(RequestHeader { number }));
    }

    fn send_small(&mut self, index: usize, at: Time, header: Header) {
        self.send_from_sink(at, self.hosts.packet(index as u32, PROBE, header));
    }

    /// Passes a data packet's contents to the control loop.
    fn inform_controller(&mut self, index: usize, at: Time, data: &DataHeader, delivered: u64) {
        self.time_round_trip(index, at, data);
        let payload = self.hosts.payload(index);
        let Some(control_loop) = &mut self.hosts.targets[index].control_loop else { return };
        // The SYN carries no payload.
        let bytes = payload * (delivered - u64::from(data.number == 0 && delivered > 0));
        if bytes > Bytes::ZERO {
            control_loop.handle_data(at, bytes, Bytes::ZERO);
        }
    }

    /// Passes the RTT that a data packet completes, and out-of-order arrivals, to the control loop.
    fn time_round_trip(&mut self, index: usize, at: Time, data: &DataHeader) {
        let out_of_order = self.hosts.receivers[index].out_of_order();
        let target = &mut self.hosts.targets[index];
        let sent = target.ack_time(data.acknowledged);
        let Some(control_loop) = &mut target.control_loop else { return };
        if let Some(sent) = sent {
            control_loop.handle_round_trip(at.since(sent));
        }
        control_loop.handle_out_of_order(out_of_order);
    }

    /// Carries out the requests of a measured transfer's control loop.
    fn work_for_controller(&mut self, index: usize, at: Time) {
        loop {
            let target = &mut self.hosts.targets[index];
            let Some(control_loop) = &mut target.control_loop else { return };
            let Some(effect) = control_loop.poll_effect() else {
                target.control_due = control_loop.poll_timeout();
                return;
            };
            self.perform(index, at, effect);
        }
    }

    fn perform(&mut self, index: usize, at: Time, effect: Effect) {
        match effect {
            Effect::Window(limit) => {
                let group = self.hosts.group(index);
                let open = group.receiver.window;
                let packets = limit.map_or(open, |bytes| group.window_in_packets(bytes).min(open));
                let packets = packets.clamp(1, UNLIMITED);
                match &mut self.hosts.targets[index].reader {
                    None => self.hosts.receivers[index].set_window(packets),
                    Some(reader) => {
                        reader.window = packets;
                        self.open_window(index);
                    }
                }
            }
            Effect::Pacing(rate) => {
                // The request counts payload; pacing counts bytes on the wire.
                let payload = self.hosts.payload(index);
                let wire = f64::from(self.hosts.packet_size) / payload.as_f64();
                let rate = rate.map(|rate| rate.scaled(wire));
                self.ask_source(index, at, Request::Pacing(rate));
            }
            Effect::Train { id, request } => {
                let size = request.size.get().clamp(u64::from(BARE_SEGMENT), 65_000) as u16;
                let packets = request.packets;
                self.ask_source(index, at, Request::Train { id, packets, size });
            }
            Effect::Probe { sequence } => {
                self.send_small(index, at, Header::Probe(ProbeHeader { sequence }));
            }
            Effect::Congestion(choice) => {
                self.ask_source(index, at, Request::Congestion(choice));
            }
            Effect::Event(event) => {
                let target = &mut self.hosts.targets[index];
                // A sender that keeps its congestion control does not switch.
                if target.may_switch || !matches!(event.kind, EventKind::Switched { .. }) {
                    target.events.push(event);
                }
            }
            _ => {}
        }
    }

    /// Starts the control loop of a measured transfer that starts.
    pub(super) fn begin_control(&mut self, index: usize, at: Time) {
        let now = at;
        let path = self.observers.path.known_path(&mut self.network, now);
        let group = self.hosts.group(index);
        let config = ControllerConfig {
            mss: group.payload,
            packet: Bytes::new(u64::from(self.hosts.packet_size)),
            max_window: group.payload * group.receiver.window,
            size: self.hosts.targets[index].size,
            path: Some(path),
        };
        let linux = group.linux;
        let before = self.hosts.targets[index].follows.and_then(|_| {
            let before = &mut self.hosts.targets[index - 1];
            before.control_due = Deadline::NEVER;
            before.control_loop.take()
        });
        let target = &mut self.hosts.targets[index];
        let sizing = match target.sizing {
            // The simulated kernel's own rule.
            Sizing::Kernel => Sizing::Linux(LinuxRule::NEWEST),
            sizing => sizing,
        };
        let (controller, clamps) = match target.maker.take() {
            Some(make) => (make(&config), false),
            None => {
                // The scenario always has the quantities that a sizing may lack.
                let Ok(controller) = sizing.controller(&config) else { return };
                (controller, sizing.clamps_autotuning())
            }
        };
        let autotuning = (clamps && linux)
            .then(|| Sizing::Linux(LinuxRule::NEWEST).controller(&config).ok())
            .flatten();
        let control_loop = match before {
            Some(before) => ControlLoop::following(before, autotuning, at),
            None => ControlLoop::new(controller, autotuning, at),
        };
        target.control_due = control_loop.poll_timeout();
        target.control_loop = Some(control_loop);
        self.run_sink_timers(index as u32, Until::Through(at));
    }
}
