use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

use sweetspot_emulator::Side;
use sweetspot_linux::datagrams::Datagrams;
use sweetspot_linux::epoll::{Epoll, Readiness};
use sweetspot_linux::event_fd::wait_readable;
use sweetspot_linux::tcp::{Flow, FlowOptions, Listener};
use sweetspot_linux::{clock, scheduling, sysctl};
use sweetspot_units::{Bytes, Duration, Time};

use super::connection::{ConnectionRole, SendingState, TrafficConnection, drain};
use super::source::{Action, TrafficSource};
use super::totals::{LoadTotals, SegmentCounts};
use crate::plan::{LabPlan, Load};

/// Tasks due within this time run together: a wake-up costs more than a packet, and the delay is a fraction of a packet's
/// transmission time on the paths studied.
const COALESCED: Duration = Duration::from_micros(200);
/// Time between two counts of datagrams after the end; even the smallest receive buffer holds the arrivals of a longer time.
const BETWEEN_LATE_COUNTS: Duration = Duration::from_millis(5);
/// Epoll tokens of listeners: this plus the load's index. Connections have lower tokens.
const LISTENER_TOKENS: u64 = 1 << 40;
/// Epoll tokens of UDP sinks: this plus the load's index.
const UDP_SINK_TOKENS: u64 = 1 << 41;

/// All sources and sinks of one side, in one thread.
pub(crate) struct TrafficNode<'a> {
    plan: &'a LabPlan,
    own: &'a Side,
    other: &'a Side,
    epoll: Epoll,
    ready: Vec<Readiness>,
    listeners: Vec<Option<Listener>>,
    udp_sinks: Vec<Option<Datagrams>>,
    /// UDP sockets, indexed by load and node.
    streams: Vec<Vec<Datagrams>>,
    sources: Vec<TrafficSource>,
    connections: Vec<Option<TrafficConnection>>,
    free: Vec<usize>,
    tasks: BinaryHeap<Reverse<(Time, Task)>>,
    totals: Vec<LoadTotals>,
    measures: bool,
}

/// A scheduled task. Among tasks due at the same time, the start of the measurement comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    BeginMeasurement,
    TrafficSource(usize),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeConfig {
    /// The side's index, from 0.
    pub side: u64,
    pub sends: bool,
    pub takes: bool,
}

impl<'a> TrafficNode<'a> {
    /// A node on `own` with open listeners; its sources start sending at `zero`. Must be called on that side.
    pub fn open(
        plan: &'a LabPlan,
        (own, other): (&'a Side, &'a Side),
        close: NodeConfig,
    ) -> io::Result<TrafficNode<'a>> {
        let mut node = TrafficNode {
            plan,
            own,
            other,
            epoll: Epoll::new()?,
            ready: Vec::new(),
            listeners: Vec::new(),
            udp_sinks: Vec::new(),
            streams: Vec::new(),
            sources: Vec::new(),
            connections: Vec::new(),
            free: Vec::new(),
            tasks: BinaryHeap::new(),
            totals: vec![LoadTotals::default(); plan.loads.len()],
            measures: false,
        };
        for (number, load) in plan.loads.iter().enumerate() {
            node.open_sinks(number, load, close.takes)?;
            if close.sends {
                node.open_sources(number, load, close.side)?;
            }
        }
        Ok(node)
    }

    fn open_sinks(&mut self, number: usize, load: &Load, takes: bool) -> io::Result<()> {
        let at = (Ipv4Addr::UNSPECIFIED, load.port).into();
        let (mut listener, mut well) = (None, None);
        if takes && load.is_udp() {
            let socket = Datagrams::bind(at)?;
            self.epoll.watch(&socket, UDP_SINK_TOKENS + number as u64)?;
            well = Some(socket);
        } else if takes {
            let socket = Listener::open(at, &sink_options(load)?)?;
            self.epoll.watch(&socket, LISTENER_TOKENS + number as u64)?;
            listener = Some(socket);
        }
        self.listeners.push(listener);
        self.udp_sinks.push(well);
        Ok(())
    }

    fn open_sources(&mut self, number: usize, load: &Load, side: u64) -> io::Result<()> {
        let mut streams = Vec::new();
        if load.is_udp() {
            for host_pair in &load.host_pairs {
                let socket = Datagrams::bind((self.own.host_pair(*host_pair), 0).into())?;
                socket.connect((self.other.host_pair(*host_pair), load.port).into())?;
                streams.push(socket);
            }
        }
        self.streams.push(streams);
        for (source, start) in TrafficSource::all(self.plan.seed, side, number, load) {
            // Relative to the start of the run, which is not known yet.
            self.tasks.push(Reverse((Time::ZERO + start, Task::TrafficSource(self.sources.len()))));
            self.sources.push(source);
        }
        Ok(())
    }

    /// Runs the loads from `zero` to the end of the plan; returns the totals of each.
    pub fn run(mut self, zero: Time) -> io::Result<Vec<LoadTotals>> {
        self.own.enter()?;
        scheduling::drop_timer_slack()?;
        let since = zero.since(Time::ZERO);
        let starts = std::mem::take(&mut self.tasks);
        self.tasks =
            starts.into_iter().map(|Reverse((t, task))| Reverse((t + since, task))).collect();
        self.tasks.push(Reverse((zero + self.plan.begin, Task::BeginMeasurement)));
        let end = zero + self.plan.end;
        let mut woke = clock::now();
        while woke < end {
            self.run_due_tasks(woke)?;
            let next = self.tasks.peek().map_or(end, |Reverse((due, _))| (*due).min(end));
            wait_readable(&[self.epoll.as_fd()], next)?;
            clock::sleep_until((woke + COALESCED).min(end));
            woke = clock::now();
            self.handle_events()?;
        }
        let late = end + self.plan.max_transit_time();
        self.settle(late)
    }

    fn run_due_tasks(&mut self, now: Time) -> io::Result<()> {
        while let Some(Reverse((due, task))) = self.tasks.peek().copied()
            && due <= now
        {
            self.tasks.pop();
            match task {
                Task::BeginMeasurement => self.begin_measurement()?,
                Task::TrafficSource(number) => self.act(number, due)?,
            }
        }
        Ok(())
    }

    /// Runs the source that is due at `due`.
    fn act(&mut self, number: usize, due: Time) -> io::Result<()> {
        let source = &mut self.sources[number];
        let (load_number, node) = (source.load, source.node);
        let load = &self.plan.loads[load_number];
        match source.action(load) {
            Action::Send => {
                // A datagram that does not fit into the host's buffers does not count as sent.
                let sent =
                    self.streams[load_number][node].send_marked(load.payload, self.measures)?;
                self.totals[load_number].sent += u64::from(sent);
            }
            Action::Open(size) => {
                let options = FlowOptions {
                    congestion: Some(load.congestion.to_owned()),
                    send_buffer: load.send_buffer,
                    ..FlowOptions::default()
                };
                let to = (self.other.host_pair(load.host_pairs[node]), load.port).into();
                let flow = Flow::connect(to, &options)?;
                self.add(
                    load_number,
                    flow,
                    ConnectionRole::Source(SendingState::new(number, due, size)),
                )?;
            }
        }
        if let Some(gap) = self.sources[number].gap(load) {
            self.tasks.push(Reverse((due + gap, Task::TrafficSource(number))));
        }
        Ok(())
    }

    fn add(&mut self, load: usize, flow: Flow, end: ConnectionRole) -> io::Result<()> {
        let slot = self.free.pop().unwrap_or(self.connections.len());
        self.epoll.watch(&flow, slot as u64)?;
        let connection = Some(TrafficConnection { load, flow, end });
        match self.connections.get_mut(slot) {
            Some(place) => *place = connection,
            None => self.connections.push(connection),
        }
        Ok(())
    }

    fn handle_events(&mut self) -> io::Result<()> {
        loop {
            let mut ready = std::mem::take(&mut self.ready);
            ready.clear();
            let more = self.epoll.take(&mut ready)?;
            // A slot is reused only after the events of this round, which may still refer to its previous connection.
            let mut freed = Vec::new();
            for one in &ready {
                match one.number {
                    n if n >= UDP_SINK_TOKENS => {
                        self.count_datagrams((n - UDP_SINK_TOKENS) as usize)?
                    }
                    n if n >= LISTENER_TOKENS => {
                        self.accept_connections((n - LISTENER_TOKENS) as usize)?
                    }
                    n => {
                        if !self.serve(n as usize, one)? {
                            freed.push(n as usize);
                        }
                    }
                }
            }
            self.free.append(&mut freed);
            self.ready = ready;
            if !more {
                return Ok(());
            }
        }
    }

    fn accept_connections(&mut self, number: usize) -> io::Result<()> {
        while let Some(flow) = self.listeners[number].as_ref().map_or(Ok(None), Listener::accept)? {
            self.add(number, flow, ConnectionRole::Sink(self.plan.loads[number].window))?;
        }
        Ok(())
    }

    fn count_datagrams(&mut self, number: usize) -> io::Result<()> {
        if let Some(well) = &self.udp_sinks[number] {
            let count = well.count()?;
            self.totals[number].received += count.marked;
            self.totals[number].delivered += count.payload;
        }
        Ok(())
    }

    /// Serves one connection; false if it has ended.
    fn serve(&mut self, slot: usize, ready: &Readiness) -> io::Result<bool> {
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else {
            return Ok(true);
        };
        let is_open = match &mut connection.end {
            // A failure here ends this connection only, not the run.
            ConnectionRole::Sink(window) if ready.readable => {
                matches!(drain(&connection.flow, *window), Ok(false))
            }
            ConnectionRole::Sink(_) => !ready.closed,
            ConnectionRole::Source(_) if ready.closed => false,
            ConnectionRole::Source(source) if ready.writable => {
                source.push(&connection.flow).is_ok()
            }
            ConnectionRole::Source(_) => true,
        };
        if !is_open && let Some(connection) = self.connections[slot].take() {
            self.close(connection)?;
        }
        Ok(is_open)
    }

    /// Closes a connection and adds its counts to the totals.
    fn close(&mut self, connection: TrafficConnection) -> io::Result<()> {
        let TrafficConnection { load: number, flow, end } = connection;
        let ConnectionRole::Source(source) = end else {
            flow.reset();
            return Ok(());
        };
        let now = clock::now();
        let mut counts = SegmentCounts::read(&flow)?;
        let totals = &mut self.totals[number];
        if source.is_finished() {
            // The sink's reset overtook the ACK of the last data.
            counts.acknowledged = source.size.unwrap_or(counts.acknowledged);
            totals.completed += 1;
            totals.completion += now.since(source.opened);
        }
        totals.add(counts, source.before);
        flow.reset();
        if let Some(pause) = self.sources[source.source].pause(&self.plan.loads[number]) {
            self.tasks.push(Reverse((now + pause, Task::TrafficSource(source.source))));
        }
        Ok(())
    }

    fn begin_measurement(&mut self) -> io::Result<()> {
        for connection in self.connections.iter_mut().flatten() {
            if let ConnectionRole::Source(source) = &mut connection.end {
                source.before = SegmentCounts::read(&connection.flow)?;
            }
        }
        (0..self.udp_sinks.len()).try_for_each(|number| self.count_datagrams(number))?;
        // A datagram that the other side sent during the measurement may have arrived already.
        for totals in &mut self.totals {
            *totals = LoadTotals { received: totals.received, ..LoadTotals::default() };
        }
        self.measures = true;
        Ok(())
    }

    /// The totals once the last datagrams of the measured time have arrived, at the latest at `late`.
    fn settle(mut self, late: Time) -> io::Result<Vec<LoadTotals>> {
        (0..self.udp_sinks.len()).try_for_each(|number| self.count_datagrams(number))?;
        for connection in std::mem::take(&mut self.connections).into_iter().flatten() {
            if let ConnectionRole::Source(source) = &connection.end {
                let counts = SegmentCounts::read(&connection.flow)?;
                self.totals[connection.load].add(counts, source.before);
            }
            connection.flow.reset();
        }
        while self.plan.loads.iter().any(Load::is_udp) && clock::now() < late {
            clock::sleep_until(clock::now() + BETWEEN_LATE_COUNTS);
            self.count_late()?;
        }
        Ok(self.totals)
    }

    /// Counts datagrams sent during the measurement that arrive after it: neither lost nor delivered within it.
    fn count_late(&mut self) -> io::Result<()> {
        for (sink, totals) in self.udp_sinks.iter().zip(&mut self.totals) {
            if let Some(sink) = sink {
                totals.received += sink.count()?.marked;
            }
        }
        Ok(())
    }
}

/// A constant window is set before the handshake, which then chooses the finest scale for it. Where the host allows it, the
/// buffer is large enough for the window to be the only limit.
fn sink_options(load: &Load) -> io::Result<FlowOptions> {
    /// Kernel memory per payload byte, as counted for SO_RCVBUF: the smallest packets (524 B) take 1280 B, and the kernel
    /// doubles the request.
    const KERNEL_BYTES_PER_PAYLOAD_BYTE: u64 = 2;
    let rmem_max = sysctl::rmem_max()?;
    let buffer = load
        .window
        .map(|window| Bytes::new(window.get().saturating_mul(KERNEL_BYTES_PER_PAYLOAD_BYTE)));
    Ok(FlowOptions {
        window: load.window,
        receive_buffer: buffer.filter(|size| *size <= rmem_max),
        ..FlowOptions::default()
    })
}
