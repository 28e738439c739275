//! Parallel connections between the same hosts: each has only a share of the path's capacity.

use crate::evidence::SharedPath;
use crate::explained::BLUR;
use crate::{Class, Flow, LimitVerdict};

/// Names the rate of all flows together in the verdict on each flow that shared a full path: flows between the same two hosts at the
/// same time share one, if the others carried more than the measurement's tolerance.
pub fn name_shared_paths(flows: &mut [Flow]) {
    let shared: Vec<Option<SharedPath>> = flows.iter().map(|flow| shared(flow, flows)).collect();
    for (flow, shared) in flows.iter_mut().zip(shared).filter(|(_, shared)| shared.is_some()) {
        flow.evidence.shared = shared;
        flow.shared_path = shared;
        flow.verdict = LimitVerdict::new(&flow.limits, &flow.evidence);
    }
}

fn shared(flow: &Flow, flows: &[Flow]) -> Option<SharedPath> {
    let (begun, ended) = flow.span.filter(|_| flow.verdict.class == Class::Bandwidth)?;
    let time = ended.since(begun).as_secs_f64();
    let ends = |flow: &Flow| [flow.source, flow.destination];
    let hosts = |flow: &Flow| ends(flow).map(|end| end.ip());
    let parts = flows.iter().filter_map(|other| {
        let is_beside = hosts(other) == hosts(flow) && ends(other) != ends(flow);
        let (since, until) = other.span.filter(|_| is_beside)?;
        let both = until.min(ended).since(begun.max(since)).as_secs_f64();
        let part = other.goodput_bps * both / time;
        (both > 0.0 && part > (1.0 - BLUR) * flow.goodput_bps).then_some(part)
    });
    let (others, rest) = parts.fold((0, 0.0), |(n, sum), part| (n + 1, sum + part));
    (others > 0).then_some(SharedPath { others, together_bps: flow.goodput_bps + rest })
}
