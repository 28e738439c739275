//! Turns a scenario into a plan for this machine: the path, the hosts at its ends, the cross traffic. A scenario that
//! cannot be emulated accurately is refused with the reason.

mod refusal;

use sweetspot_emulator::HostPair;
use sweetspot_path::PathSpec;
use sweetspot_scenario::{
    Application, Congestion, Cross, Flavour, HopChain, Path, Reverse, Scenario, Tcp, TrafficKind,
};
use sweetspot_sizing::Sizing;
use sweetspot_units::{Bytes, Duration, Volume};

pub(crate) use refusal::{congestion_controls, refusals};

/// IPv4 and TCP headers with timestamps (RFC 7323), and without.
const HEADERS_WITH_TIMESTAMPS: Bytes = Bytes::new(52);
const HEADERS: Bytes = Bytes::new(40);
/// IPv4 and UDP headers.
const UDP_HEADERS: Bytes = Bytes::new(28);
/// Maximum number of different RTTs in one entry.
const MAX_NODES: u64 = 50;
/// Allowance for the combined lateness of the emulator and a thread.
const WAKE_UPS: Duration = Duration::from_millis(50);
/// Linux's initial receive and send buffer.
const INITIAL_BUFFER: Bytes = Bytes::new(131_072);

#[derive(Debug)]
pub(crate) struct LabPlan {
    /// The links between routers, from the transfers' senders on.
    pub chain: HopChain,
    /// The bottleneck link, with the propagation delay of all links.
    pub narrow: PathSpec,
    /// One-way propagation delay common to all flows after the hops, which the last hop adds; the host pairs have the rest.
    common: Duration,
    pub host_pairs: Vec<HostPair>,
    /// `net.ipv4` settings of both namespaces.
    pub settings: Vec<(&'static str, String)>,
    pub targets: Vec<TargetPlan>,
    pub loads: Vec<Load>,
    /// Whether the reverse path carries the loads, too.
    pub mirror: bool,
    pub begin: Duration,
    pub end: Duration,
    pub seed: u64,
}

#[derive(Debug)]
pub(crate) struct TargetPlan {
    pub host_pair: usize,
    pub start: Duration,
    pub size: Bytes,
    /// Whether the scenario gives it an end.
    pub ends: bool,
    pub sizing: Sizing,
    pub congestion: &'static str,
    /// Whether its sizing policy may switch the congestion control.
    pub may_switch: bool,
    pub send_buffer: Option<Bytes>,
    pub reader: Application,
    pub writer: Application,
    /// The size of one write: the payload of a full packet.
    pub portion: Bytes,
    /// The seed of the writer's gaps.
    pub seed: u64,
}

/// One entry of cross traffic.
#[derive(Debug)]
pub(crate) struct Load {
    pub kind: TrafficKind,
    /// For each of its nodes, the pair of hosts.
    pub host_pairs: Vec<usize>,
    /// Number of sources on each side.
    pub sources: u64,
    pub start: (Duration, Duration),
    pub congestion: &'static str,
    pub window: Option<Bytes>,
    pub send_buffer: Option<Bytes>,
    /// Payload of a full packet.
    pub payload: Bytes,
    /// Length of a packet on the wire.
    pub packet: Bytes,
    pub port: u16,
}

impl Load {
    /// Whether it sends datagrams.
    pub fn is_udp(&self) -> bool {
        matches!(self.kind, TrafficKind::Pareto { .. } | TrafficKind::Poisson { .. })
    }
}

/// First port of the loads; entry i listens on this plus i.
const FIRST_PORT: u16 = 20_000;

impl LabPlan {
    /// The plan of `scenario`, which must not be refused.
    pub fn new(scenario: &Scenario) -> LabPlan {
        let (path, hop) = (&scenario.path, scenario.path.narrow());
        let end = scenario.warmup + scenario.duration;
        let common = common_rest(scenario);
        let last = path.hops.len() - 1;
        let mtu = path.packet;
        // Propagation common to all flows after the hops is added at the end of each direction.
        let chain = path.chain(common, scenario.seed);
        let mut plan = LabPlan {
            settings: settings(scenario),
            narrow: narrow_with_all(&chain.hops, path.bottleneck()),
            chain,
            common,
            host_pairs: Vec::new(),
            targets: Vec::new(),
            loads: Vec::new(),
            mirror: scenario.path.reverse == Reverse::Mirror,
            begin: scenario.warmup,
            end,
            seed: scenario.seed,
        };
        for transfer in &scenario.transfers {
            let host_pair = plan.add_leaf(path, (0, last), path.rtt, &transfer.tcp);
            // A policer lets no larger burst through.
            let burst = hop.policer.map_or(hop.burst, |policer| policer.burst);
            let rate = scenario.path.mean_rate(transfer.start, end);
            let max = rate * end.saturating_sub(transfer.start) + burst + mtu;
            let full = mtu.saturating_sub(headers(&transfer.tcp));
            plan.targets.push(TargetPlan {
                host_pair,
                start: transfer.start,
                size: transfer.size.map_or(max, |size| size.min(max)),
                ends: transfer.size.is_some(),
                sizing: transfer.sizing,
                congestion: kernel_name(transfer.congestion),
                may_switch: !transfer.congestion_fixed,
                send_buffer: fixed_send_buffer(scenario, &transfer.tcp, full),
                reader: transfer.reader.clone(),
                writer: transfer.writer.clone(),
                portion: full,
                seed: scenario.seed + plan.targets.len() as u64,
            });
        }
        for cross in &scenario.cross {
            plan.add_load(scenario, cross);
        }
        plan
    }

    /// The longest time that a packet is in flight: every buffer full, and the most distant pair of hosts.
    pub fn max_transit_time(&self) -> Duration {
        let mtu = self.narrow.mtu;
        let each = |hop: &PathSpec| {
            [hop.up, hop.down].map(|direction| {
                let varies = direction.jitter + direction.reorder_by + direction.aggregation;
                direction.delay + direction.buffer.in_bytes(mtu) / direction.lasting_rate() + varies
            })
        };
        let directions = self.chain.hops.iter().map(each);
        let sum = directions.fold([Duration::ZERO; 2], |sum, direction| {
            [sum[0] + direction[0], sum[1] + direction[1]]
        });
        let extra = self.host_pairs.iter().map(|pair| pair.extra_delay).max();
        sum[0].max(sum[1]) + extra.unwrap_or(Duration::ZERO) + WAKE_UPS
    }

    fn add_leaf(&mut self, path: &Path, hops: (usize, usize), rtt: Duration, tcp: &Tcp) -> usize {
        self.host_pairs.push(HostPair {
            extra_delay: path.rest(hops, rtt).saturating_sub(self.common),
            hops: (path.hops.len() > 1).then_some(hops),
            initial_window: Some(tcp.initial_window.min(u64::from(u16::MAX)) as u32),
            quick_acks: !tcp.delayed_ack,
        });
        self.host_pairs.len() - 1
    }

    fn add_load(&mut self, scenario: &Scenario, cross: &Cross) {
        let (sources, nodes, window) = shape(&cross.kind);
        let (low, high) = cross.rtt;
        let nodes = if low == high { 1 } else { nodes.min(MAX_NODES) };
        let host_pairs = (0..nodes).map(|node| {
            // As in the simulator, spread evenly from one end of the range to the other.
            let share = if nodes > 1 { node as f64 / (nodes - 1) as f64 } else { 0.5 };
            self.add_leaf(&scenario.path, cross.hops, low + (high - low).scaled(share), &cross.tcp)
        });
        let host_pairs: Vec<usize> = host_pairs.collect();
        let sources = match cross.kind {
            // Each node opens its share of the connections.
            TrafficKind::Arrivals { .. } => host_pairs.len() as u64,
            _ => sources,
        };
        let packet = scenario.path.packet;
        let headers = match cross.kind {
            TrafficKind::Pareto { .. } | TrafficKind::Poisson { .. } => UDP_HEADERS,
            _ => headers(&cross.tcp),
        };
        let payload = packet.saturating_sub(headers);
        let port = FIRST_PORT + self.loads.len() as u16;
        self.loads.push(Load {
            kind: cross.kind,
            host_pairs,
            sources,
            start: cross.start,
            congestion: kernel_name(cross.congestion),
            window: window.map(|window| window.in_bytes(payload)),
            send_buffer: fixed_send_buffer(scenario, &cross.tcp, payload),
            payload,
            packet,
            port,
        });
    }
}

fn headers(tcp: &Tcp) -> Bytes {
    if tcp.timestamps { HEADERS_WITH_TIMESTAMPS } else { HEADERS }
}

/// The number of sources, the number of RTTs over which they are spread, and their window.
fn shape(kind: &TrafficKind) -> (u64, u64, Option<Volume>) {
    match *kind {
        TrafficKind::Pareto { count, .. } | TrafficKind::Poisson { count, .. } => {
            (count, count, None)
        }
        TrafficKind::Elephants { count, window } => (count, count, window),
        TrafficKind::Mice { count, nodes, window, .. } => (count, nodes, window),
        TrafficKind::ClosedLoop { users, nodes, window, .. } => (users, nodes, window),
        TrafficKind::Arrivals { nodes, window, .. } => (nodes, nodes, window),
    }
}

fn narrow_with_all(hops: &[PathSpec], narrow: usize) -> PathSpec {
    let mut all = hops[narrow].clone();
    all.up.delay = hops.iter().fold(Duration::ZERO, |sum, hop| sum + hop.up.delay);
    all.down.delay = hops.iter().fold(Duration::ZERO, |sum, hop| sum + hop.down.delay);
    all
}

/// The minimum of this remaining delay over all flows; zero if flows leave before the last hop or enter after the first.
fn common_rest(scenario: &Scenario) -> Duration {
    let path = &scenario.path;
    let whole = (0, path.hops.len() - 1);
    if scenario.cross.iter().any(|cross| cross.hops != whole) {
        return Duration::ZERO;
    }
    let target = (!scenario.transfers.is_empty()).then_some(path.rtt);
    let cross = scenario.cross.iter().map(|cross| cross.rtt.0);
    path.rest(whole, target.into_iter().chain(cross).min().unwrap_or(path.rtt))
}

/// The kernel's name of a congestion control. Loss recovery is always the kernel's own: with SACK, if the scenario's flows
/// use it.
pub(crate) fn kernel_name(congestion: Congestion) -> &'static str {
    match congestion {
        Congestion::Reno
        | Congestion::NewReno
        | Congestion::Sack
        | Congestion::Fack
        | Congestion::Sack1 => "reno",
        Congestion::Cubic => "cubic",
        Congestion::Vegas => "vegas",
        Congestion::Lp => "lp",
        Congestion::Bbr => "bbr",
    }
}

pub(crate) fn every_tcp(scenario: &Scenario) -> impl Iterator<Item = &Tcp> {
    let transfers = scenario.transfers.iter().map(|transfer| &transfer.tcp);
    transfers.chain(scenario.cross.iter().map(|cross| &cross.tcp))
}

/// tcp_wmem[2], if all senders of the scenario are Linux ones with the same value.
fn common_send_buffer(scenario: &Scenario) -> Option<Bytes> {
    let limit = |tcp: &Tcp| match (tcp.flavour, tcp.send_buffer) {
        (Flavour::Linux, Some(Volume::Bytes(limit))) => Some(limit),
        _ => None,
    };
    let first = every_tcp(scenario).next().and_then(limit);
    first.filter(|_| every_tcp(scenario).all(|tcp| limit(tcp) == first))
}

/// SO_SNDBUF, if the buffer does not grow to the intended limit by itself. The kernel doubles the request, and a Linux
/// scenario's value is the doubled one.
fn fixed_send_buffer(scenario: &Scenario, tcp: &Tcp, full: Bytes) -> Option<Bytes> {
    match (common_send_buffer(scenario), tcp.flavour) {
        (Some(_), _) => None,
        (None, Flavour::Linux) => tcp.send_buffer.map(|size| size.in_bytes(full) / 2),
        (None, Flavour::Ns2) => tcp.send_buffer.map(|size| size.in_bytes(full)),
    }
}

fn settings(scenario: &Scenario) -> Vec<(&'static str, String)> {
    let tcp = every_tcp(scenario).next().copied().unwrap_or(Tcp::LINUX);
    let hop = scenario.path.narrow();
    // Eight times the path's BDP and buffer, in kernel memory, so that it is never the limit; at least the kernel's default
    // of 6 MiB.
    let holds = scenario.path.bdp() + hop.buffer.in_bytes(scenario.path.packet);
    let max = (holds * 8).max(Bytes::new(6 << 20)).min(Bytes::new(1 << 30));
    let buffers = |max: Bytes| format!("4096 {} {}", INITIAL_BUFFER.min(max).get(), max.get());
    let truth = |yes: bool| u8::from(yes).to_string();
    vec![
        ("tcp_rmem", buffers(max)),
        ("tcp_wmem", buffers(common_send_buffer(scenario).unwrap_or(max))),
        // Each flow sets its own. A flow that began with BBR, the default on some hosts, would stay paced (`bbr_init`,
        // net/ipv4/tcp_bbr.c: SK_PACING_NEEDED), whatever congestion control it is given afterwards.
        ("tcp_congestion_control", "reno".to_owned()),
        // No connection may begin with another connection's cached metrics.
        ("tcp_no_metrics_save", truth(true)),
        ("tcp_timestamps", truth(tcp.timestamps)),
        ("tcp_ecn", truth(tcp.ecn)),
        ("tcp_slow_start_after_idle", truth(tcp.slow_start_restart)),
        ("tcp_rto_min_us", tcp.min_rto.as_micros().to_string()),
        ("ip_local_port_range", "10000 60999".to_owned()),
    ]
}
