//! Parallel connections between the same hosts: each has only a share of the path's capacity.

use std::collections::HashMap;
use std::net::IpAddr;

use sweetspot_trace::flow::Deliveries;
use sweetspot_units::{Rate, Time};

use crate::evidence::{QUEUE, QUEUE_AFTER_LOSS, SharedPath};
use crate::explained::RATE_TOLERANCE;
use crate::{CaptureExtent, Class, Evidence, Flow};

/// Adds the rate of all flows together to the verdict on each flow that shared a full path. Flows share a path if they ran
/// between the same two hosts at the same time, and the others carried more than the measurement's tolerance.
///
/// They filled the path if a single flow showed that, or if a queue stood and the sum of their rates was constant. This sum is
/// then the rate of the bottleneck, and losses were its buffer's overflow. The rate of a single flow varies and does not show the
/// capacity.
pub fn name_shared_paths(flows: &mut [Flow]) {
    let together = together(flows);
    let shared: Vec<Option<SharedPath>> = flows.iter().map(|flow| shared(flow, flows)).collect();
    for (flow, shared) in flows.iter_mut().zip(shared).filter(|(_, shared)| shared.is_some()) {
        let span = flow.span.map(|(begun, ended)| [begun, ended]);
        let both = span.zip(together.get(&hosts(flow)));
        if both.is_some_and(|(span, together)| fills_path(span, &flow.evidence, together)) {
            share_full_path(flow, shared);
        }
        flow.evidence.shared = shared;
        if flow.verdict.class == Class::Bandwidth {
            flow.shared_path = shared;
        }
        flow.conclude();
    }
    let fill: Vec<bool> = flows.iter().map(|flow| is_beside_filling_flow(flow, flows)).collect();
    for (flow, _) in flows.iter_mut().zip(fill).filter(|(_, fill)| *fill) {
        flow.evidence.others_fill_path = true;
        flow.evidence.attribute_to_window(&mut flow.limits);
        flow.conclude();
        flow.shared_path = flow.shared_path.filter(|_| flow.verdict.class == Class::Bandwidth);
    }
}

/// Whether a flow that carries a part of the capacity beside `flow` would fill the path without it, because only the path limits
/// it.
fn is_beside_filling_flow(flow: &Flow, flows: &[Flow]) -> bool {
    parts(flow, flows).any(|(other, _)| fills_queue(other.verdict.class, &other.evidence))
}

/// For each of the live connections between two hosts, by limit and evidence: whether another one with a noticeable part fills the path.
pub fn have_filling_neighbours(connections: &[(Class, Evidence)]) -> Vec<bool> {
    let others_fill = |(at, (_, own)): (usize, &(Class, Evidence))| {
        connections.iter().enumerate().any(|(other, (limit, evidence))| {
            let [rate, own] = [evidence, own].map(|e| e.goodput.as_f64());
            other != at && fills_queue(*limit, evidence) && is_noticeable_beside(rate, own)
        })
    };
    connections.iter().enumerate().map(others_fill).collect()
}

/// Whether a flow with this limit sends ever more until the path's queue is full. A full window bounds it.
fn fills_queue(limit: Class, evidence: &Evidence) -> bool {
    !evidence.fills_window
        && matches!(
            limit,
            Class::Bandwidth | Class::Congestion | Class::Transport | Class::Opportunity
        )
}

/// Whether a flow at `rate` carries a noticeable part beside one at `own`.
fn is_noticeable_beside(rate: f64, own: f64) -> bool {
    rate > (1.0 - RATE_TOLERANCE) * own
}

/// The deliveries of all flows, summed for each pair of hosts.
fn together(flows: &[Flow]) -> HashMap<[IpAddr; 2], Deliveries> {
    let mut series: HashMap<_, Vec<&Deliveries>> = HashMap::new();
    for flow in flows {
        let deliveries = flow.on_full_path.iter().map(|on_full_path| &on_full_path.deliveries);
        series.entry(hosts(flow)).or_default().extend(deliveries);
    }
    sums(series)
}

/// The sum of each list of deliveries.
pub fn sums(series: HashMap<[IpAddr; 2], Vec<&Deliveries>>) -> HashMap<[IpAddr; 2], Deliveries> {
    let sum = |series: Vec<_>| Deliveries::together(series.into_iter());
    series.into_iter().map(|(hosts, series)| (hosts, sum(series))).collect()
}

/// Whether a flow and the others on its path, which delivered `together`, filled the path during `span`, the flow's lifetime.
pub fn fills_path(span: [Time; 2], flow: &Evidence, together: &Deliveries) -> bool {
    let Some((min, rtt)) = flow.rtt_min.zip(flow.rtt) else { return false };
    // The min RTT of a path that was never seen empty contains part of the queueing delay.
    let queues = match flow.doubts_rtt_min {
        true => rtt > min.scaled(QUEUE),
        false => rtt > min.scaled(QUEUE_AFTER_LOSS) && !flow.loses_elsewhere,
    };
    queues && together.constant_rate(span, rtt).is_some()
}

/// Attributes the time that `flow` spent behind the queue to the path's capacity, which leaves the flow no more than its own
/// rate.
fn share_full_path(flow: &mut Flow, shared: Option<SharedPath>) {
    let Some((on_full_path, shared)) = flow.on_full_path.take().zip(shared) else { return };
    if let Some(path) = &mut flow.path {
        path.share(Rate::from_f64(shared.together_bps));
    }
    flow.limits = on_full_path.limits;
    flow.seen = flow.seen.map(CaptureExtent::on_full_path);
    flow.evidence.capacity = Some(flow.evidence.goodput);
    flow.conclude();
}

fn hosts(flow: &Flow) -> [IpAddr; 2] {
    [flow.source, flow.destination].map(|end| end.ip())
}

fn shared(flow: &Flow, flows: &[Flow]) -> Option<SharedPath> {
    let (others, rest) =
        parts(flow, flows).fold((0, 0.0), |(n, sum), (_, part)| (n + 1, sum + part));
    (others > 0).then_some(SharedPath { others, together_bps: flow.goodput_bps + rest })
}

/// The flows that carry a noticeable part beside `flow`, and their rates over its lifetime.
fn parts<'a>(flow: &'a Flow, flows: &'a [Flow]) -> impl Iterator<Item = (&'a Flow, f64)> {
    // Flows of one reading have no times, but all of them were open at that moment.
    let overlap = move |other: &Flow| match (flow.span, other.span) {
        (Some((begun, ended)), Some((since, until))) => {
            let both = until.min(ended).since(begun.max(since));
            both.as_secs_f64() / ended.since(begun).as_secs_f64()
        }
        (None, None) if flow.goodput_is_while_sending && other.goodput_is_while_sending => 1.0,
        _ => 0.0,
    };
    let ends = |flow: &Flow| [flow.source, flow.destination];
    flows.iter().filter_map(move |other| {
        let is_beside = hosts(other) == hosts(flow) && ends(other) != ends(flow);
        let part = other.goodput_bps * overlap(other);
        let counts = is_beside && is_noticeable_beside(part, flow.goodput_bps);
        counts.then_some((other, part))
    })
}

#[cfg(test)]
mod tests {
    use sweetspot_units::{Bytes, Duration, Rate};

    use super::*;
    use crate::Limits;
    use crate::flow::OnFullPath;

    const SECONDS: u64 = 10;

    /// A flow of 10 s that is limited by losses according to its own rate. Its RTT is `rtt` ms, 40 ms without queues. In the
    /// seconds of its `turn` it delivers 900 kB, in the others `low` kB.
    fn held_by_losses(port: u16, turn: u64, low: u64, rtt: u64) -> Flow {
        let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        let lasted = Duration::from_secs(SECONDS);
        let mut deliveries = Deliveries::default();
        for ms in (0..SECONDS * 1000).step_by(100) {
            let kilobytes = if ms / 1000 % 2 == turn { 900 } else { low };
            deliveries.add(at(ms), kilobytes * 100);
        }
        let bytes = Bytes::new((900 + low) * 1000 * SECONDS / 2);
        let evidence = Evidence {
            goodput: bytes / lasted,
            rtt_min: Some(Duration::from_millis(40)),
            rtt: Some(Duration::from_millis(rtt)),
            retransmitted: Some(20),
            bytes,
            lasted,
            ..Evidence::default()
        };
        let ends = [([192, 0, 2, 1], port).into(), ([192, 0, 2, 2], 80).into()];
        let limits = Limits::only(Class::Congestion, lasted);
        let mut flow = Flow::new(ends[0], ends[1], limits, &evidence);
        flow.span = Some((at(0), at(SECONDS * 1000)));
        let limits = Limits::only(Class::Bandwidth, lasted);
        flow.on_full_path = Some(OnFullPath { limits, deliveries });
        flow
    }

    fn named(mut flows: [Flow; 2]) -> [Class; 2] {
        name_shared_paths(&mut flows);
        flows.map(|flow| flow.verdict.class)
    }

    /// 900 and 100 kB in turn are 1 MB per second, 8 Mbit/s.
    #[test]
    fn alternating_flows_with_a_constant_sum_and_a_queue_fill_the_path() {
        let mut flows = [0, 1].map(|turn| held_by_losses(1 + turn as u16, turn, 100, 80));
        name_shared_paths(&mut flows);
        for flow in &flows {
            let words = &flow.verdict.words;
            assert_eq!(flow.verdict.class, Class::Bandwidth, "{words}");
            assert!(words.contains("1 other connection (together 8.0 Mbit/s)"), "{words}");
            assert!(!flow.fix.contains("repair"), "{}", flow.fix);
            assert!(!flow.fix.contains("set a window"), "{}", flow.fix);
            assert!(flow.fix.contains("limit both (sweetspot tune)"), "{}", flow.fix);
            assert_eq!(flow.evidence.sweet_spot(), None);
        }
    }

    /// Only the first flow fills the queue: at its own rate times the RTT without the queue, 4 Mbit/s x 40 ms, it would be
    /// empty.
    #[test]
    fn a_window_is_advised_beside_a_flow_that_its_program_limits() {
        let [one, mut other] = [0, 1].map(|turn| held_by_losses(1 + turn as u16, turn, 100, 80));
        other.limits = Limits::only(Class::Application, Duration::from_secs(SECONDS));
        let limits = other.limits;
        other.on_full_path = other.on_full_path.map(|view| OnFullPath { limits, ..view });
        other.conclude();
        let mut flows = [one, other];
        name_shared_paths(&mut flows);
        let fix = &flows[0].fix;
        assert_eq!(flows[1].verdict.class, Class::Application);
        assert!(fix.contains("a window of 20 kB on the receiver"), "{fix}");
        assert_eq!(flows[0].evidence.sweet_spot(), Some(Bytes::new(20_000)));
    }

    /// A part is noticeable from a twentieth on: 1 Mbit/s beside 16 Mbit/s, but not beside 32.
    #[test]
    fn a_live_connection_has_no_sweet_spot_beside_one_that_fills_the_path() {
        let neighbours = |connections: [(u64, Class); 2]| {
            let evidence = |mbit| Evidence {
                goodput: Rate::from_mbit_per_second(mbit),
                ..Evidence::default()
            };
            have_filling_neighbours(&connections.map(|(mbit, limit)| (limit, evidence(mbit))))
        };
        let full = Class::Bandwidth;
        assert_eq!(neighbours([(16, full), (1, full)]), [true, true]);
        assert_eq!(neighbours([(32, full), (1, full)]), [false, true]);
        assert_eq!(neighbours([(16, full), (1, Class::Application)]), [false, true]);
    }

    #[test]
    fn losses_without_queue_or_constant_sum_show_no_full_path() {
        let in_turn = |rtt| [0, 1].map(|turn| held_by_losses(1 + turn as u16, turn, 100, rtt));
        assert_eq!(named(in_turn(42)), [Class::Congestion; 2]);
        // Both are fast in the same seconds: the sum is 1.8 MB and 0.2 MB.
        let at_once = [1, 2].map(|port| held_by_losses(port, 0, 100, 80));
        assert_eq!(named(at_once), [Class::Congestion; 2]);
        // One of the two carries almost nothing.
        let [one, mut other] = in_turn(80);
        other.goodput_bps = Rate::from_bits_per_second(1000).as_f64();
        assert_eq!(named([one, other])[0], Class::Congestion);
    }
}
