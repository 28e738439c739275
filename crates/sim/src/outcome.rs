//! The result of a run: snapshots of all counts, and the outcome between two of them.

use sweetspot_scenario::{
    BottleneckOutcome, ControllerEvent, CrossOutcome, Outcome, Scenario, TransferOutcome,
    time_under_way,
};
use sweetspot_sizing::SizingEvent;
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::network::HopTotals;
use crate::observers::{GroupTotals, SenderView, mean_rate, utilisation};
use crate::scheduler::Scheduler;
use crate::world::World;

/// All counts at one time.
pub(crate) struct Snapshot {
    at: Time,
    narrow: HopTotals,
    forwarded: u64,
    targets: Vec<TargetTotals>,
    groups: Vec<GroupTotals>,
}

struct TargetTotals {
    sender: SenderView,
    window: u64,
    dropped: u64,
}

impl Snapshot {
    pub(crate) fn take<S: Scheduler>(world: &mut World<S>) -> Snapshot {
        let World { queue, network, hosts, observers } = world;
        let at = queue.now();
        let narrow = network.hop(observers.path.narrow()).totals(at);
        let mut groups = observers.totals.clone();
        for flow in &hosts.flows {
            let sender = &flow.sender;
            let group = &mut groups[flow.group as usize];
            group.add(flow.direction, sender.acknowledged(), sender.statistics());
        }
        let targets = observers.monitors.iter().map(|monitor| TargetTotals {
            sender: monitor.sender(),
            window: monitor.window(),
            dropped: monitor.dropped,
        });
        let forwarded = network.hops().map(|hop| hop.totals(at).departures).sum();
        Snapshot { at, narrow, forwarded, targets: targets.collect(), groups }
    }
}

/// The outcome from `begin` to `end`. `before` spans the time before the first transfer.
pub(crate) fn outcome<S: Scheduler>(
    scenario: &Scenario,
    world: &World<S>,
    begin: &Snapshot,
    end: &Snapshot,
    before: Option<(Snapshot, Snapshot)>,
) -> Outcome {
    let transfers = 0..world.hosts.targets.len();
    let crosses = scenario.transfers.len()..world.hosts.groups.len();
    Outcome {
        scenario: scenario.title.clone(),
        engine: "sim".into(),
        seed: scenario.seed,
        version: env!("CARGO_PKG_VERSION").into(),
        transfers: transfers.map(|i| transfer_outcome(scenario, world, i, begin, end)).collect(),
        cross: crosses.map(|i| cross_outcome(scenario, world, i, begin, end)).collect(),
        bottleneck: bottleneck_outcome(scenario, begin, end, before),
        events: world.queue.happened(),
        packets_forwarded: end.forwarded,
        ..Outcome::default()
    }
}

fn transfer_outcome<S>(
    scenario: &Scenario,
    world: &World<S>,
    i: usize,
    begin: &Snapshot,
    end: &Snapshot,
) -> TransferOutcome {
    let payload = world.hosts.groups[world.hosts.flows[i].group as usize].payload;
    let (a, b) = (&begin.targets[i], &end.targets[i]);
    let (old, new) = (a.sender.statistics, b.sender.statistics);
    let acknowledged = b.sender.acknowledged - a.sender.acknowledged;
    let target = &world.hosts.targets[i];
    let completion_s = completion(end, i);
    let measured = [begin.at, end.at].map(|at| at.since(Time::ZERO).as_secs_f64());
    let elapsed = match (target.size, target.began) {
        (Some(_), Some(began)) => {
            let began = began.since(Time::ZERO).as_secs_f64();
            time_under_way(measured.into(), began, completion_s)
        }
        _ => end.at.since(begin.at).as_secs_f64(),
    };
    let bits = acknowledged as f64 * payload.as_f64() * 8.0;
    let rtt = &world.observers.monitors[i].rtt;
    let seconds = |nanos: Option<u64>| Duration::from_nanos(nanos.unwrap_or(0)).as_secs_f64();
    // The exact position within its bin is unknown, but it is not below a mean in the same bin.
    let p99 = rtt.quantile_bin(0.99).map(|bin| {
        let mean = rtt.mean().filter(|mean| *mean <= bin.largest);
        bin.middle().max(mean.unwrap_or(0))
    });
    TransferOutcome {
        goodput_bps: if bits > 0.0 { bits / elapsed } else { 0.0 },
        rtt_mean_s: seconds(rtt.mean()),
        rtt_p99_s: seconds(p99),
        loss_rate: ratio(b.dropped - a.dropped, new.sent - old.sent),
        retransmitted_packets: new.retransmitted - old.retransmitted,
        timeouts: new.timeouts - old.timeouts,
        window_final_bytes: b.window * payload.get(),
        completion_s,
        sizing: scenario.transfers[i].sizing.to_string(),
        events: target.events.iter().map(controller_event).collect(),
    }
}

/// Completion time of transfer `i` in seconds, if it is complete. Transfers are the first groups.
fn completion(end: &Snapshot, i: usize) -> Option<f64> {
    let totals = &end.groups[i];
    (totals.completed > 0).then(|| totals.completion as f64 / 1e9)
}

fn controller_event(event: &SizingEvent) -> ControllerEvent {
    let (rate, rtt, window) = event.kind.quantities();
    ControllerEvent {
        at_s: event.at.as_secs_f64(),
        kind: event.kind.name().to_owned(),
        window_bytes: window.map(Bytes::get),
        rate_bps: rate.map(Rate::as_f64),
        rtt_s: rtt.map(Duration::as_secs_f64),
        reason: event.kind.reason().map(|reason| reason.to_string()),
        congestion_to: event.kind.congestion().map(|choice| choice.to_string()),
    }
}

fn cross_outcome<S>(
    scenario: &Scenario,
    world: &World<S>,
    i: usize,
    begin: &Snapshot,
    end: &Snapshot,
) -> CrossOutcome {
    let totals = end.groups[i].since(begin.groups[i]);
    let payload = world.hosts.groups[i].payload;
    let elapsed = end.at.since(begin.at).as_secs_f64();
    let goodput = |packets: u64| packets as f64 * payload.as_f64() * 8.0 / elapsed;
    let kind = scenario.cross[i - scenario.transfers.len()].kind;
    CrossOutcome {
        kind: kind.name().into(),
        goodput_bps: goodput(totals.delivered),
        forward_goodput_bps: Some(goodput(totals.delivered - totals.delivered_backward)),
        reverse_goodput_bps: Some(goodput(totals.delivered_backward)),
        loss_rate: ratio(totals.dropped, totals.sent),
        retransmitted_packets: totals.retransmitted,
        timeouts: totals.timeouts,
        completed: kind.finishes().then_some(totals.completed),
        completion_mean_s: (totals.completed > 0)
            .then(|| totals.completion as f64 / totals.completed as f64 / 1e9),
    }
}

fn bottleneck_outcome(
    scenario: &Scenario,
    begin: &Snapshot,
    end: &Snapshot,
    before: Option<(Snapshot, Snapshot)>,
) -> BottleneckOutcome {
    let rate = |from: Time, until: Time| mean_rate(scenario, from, until);
    let used = |a: &Snapshot, b: &Snapshot| {
        utilisation(rate(a.at, b.at), b.narrow.sent_bits - a.narrow.sent_bits, b.at.since(a.at))
    };
    let (a, b) = (&begin.narrow, &end.narrow);
    let nanos = end.at.since(begin.at).as_nanos() as f64;
    let waited = |a: u128, b: u128| (b - a) as f64 / nanos;
    BottleneckOutcome {
        utilisation: used(begin, end),
        utilisation_before: before.map_or(0.0, |(a, b)| used(&a, &b)),
        loss_rate: ratio(b.drops - a.drops, b.arrivals - a.arrivals),
        queue_mean_packets: waited(a.waits.packet_time, b.waits.packet_time),
        queue_max_packets: b.waits.max,
        queue_delay_mean_s: waited(a.waits.byte_time, b.waits.byte_time) * 8.0
            / rate(begin.at, end.at).as_f64(),
    }
}

/// The ratio of `part` to `whole`, at most 1: packets sent before the measured time may be lost
/// within it.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part.min(whole) as f64 / whole as f64 }
}
