//! Computes the outcome of a run.

use sweetspot_control::series::SeriesRow;
use sweetspot_scenario::{
    ControllerEvent, CrossOutcome, TrafficKind, TransferOutcome, time_under_way,
};
use sweetspot_statistics::{Sorted, mean};
use sweetspot_units::{Bytes, Duration};

use super::target::TransferTrace;
use crate::plan::{Load, TargetPlan};
use crate::traffic::LoadTotals;

/// One transfer over the measured interval; `size` is its content, if finite.
pub(super) fn transfer(
    plan: &TargetPlan,
    trace: &TransferTrace,
    size: Option<Bytes>,
    (begin, end): (Duration, Duration),
    handshake: Duration,
) -> TransferOutcome {
    let at = |row: &SeriesRow| trace.began.as_secs_f64() + row.t_s;
    let (from, to) = (begin.as_secs_f64(), end.as_secs_f64());
    let delivered = delivered(trace, size, to) - delivered(trace, size, from);
    let before = trace.rows.iter().rfind(|row| at(row) <= from);
    let within: Vec<&SeriesRow> =
        trace.rows.iter().filter(|row| at(row) > from && at(row) <= to).collect();
    let last = within.last().copied();
    let grown = |of: fn(&SeriesRow) -> Option<u64>| {
        let value = |row: Option<&SeriesRow>| row.and_then(of).unwrap_or(0);
        value(last.or(before)).saturating_sub(value(before))
    };
    let retransmitted = grown(|row| row.retransmitted);
    let round_trips: Sorted = within.iter().filter_map(|row| row.rtt_s).collect();
    let completion_s = trace.ended.map(|ended| ended.saturating_sub(trace.began).as_secs_f64());
    let elapsed = match size {
        Some(_) => time_under_way((from, to), trace.began.as_secs_f64(), completion_s),
        None => to - from,
    };
    TransferOutcome {
        goodput_bps: if delivered > 0.0 { delivered * 8.0 / elapsed } else { 0.0 },
        rtt_mean_s: mean(&round_trips).unwrap_or(0.0),
        rtt_p99_s: round_trips.quantile(0.99).unwrap_or(0.0),
        loss_rate: ratio(retransmitted, grown(|row| row.segments)),
        retransmitted_packets: retransmitted,
        timeouts: grown(|row| row.timeouts),
        window_final_bytes: last.or(before).and_then(|row| row.window_bytes).unwrap_or(0),
        completion_s,
        sizing: plan.sizing.to_string(),
        events: trace.events.iter().map(|mark| event(mark, trace.began, handshake)).collect(),
    }
}

/// Content delivered by `at` seconds, interpolated linearly between the rows.
fn delivered(trace: &TransferTrace, size: Option<Bytes>, at: f64) -> f64 {
    let began = trace.began.as_secs_f64();
    let mut points = vec![(began, 0.0)];
    points.extend(trace.rows.iter().map(|row| (began + row.t_s, row.bytes as f64)));
    if let (Some(ended), Some(size)) = (trace.ended, size) {
        points.push((ended.as_secs_f64(), size.as_f64()));
    }
    let next = points.partition_point(|(t, _)| *t <= at);
    match (next.checked_sub(1).map(|i| points[i]), points.get(next)) {
        (None, _) => 0.0,
        (Some((_, bytes)), None) => bytes,
        (Some((t0, a)), Some((t1, b))) => a + (b - a) * (at - t0) / (t1 - t0),
    }
}

fn event(
    event: &sweetspot_control::series::SeriesEvent,
    began: Duration,
    handshake: Duration,
) -> ControllerEvent {
    ControllerEvent {
        // Event times count from the receiver's accept.
        at_s: (began + handshake).as_secs_f64() + event.t_s,
        kind: event.event.clone(),
        window_bytes: event.window_bytes,
        rate_bps: event.rate_bps,
        rtt_s: event.rtt_s,
        reason: event.reason.clone(),
        congestion_to: event.congestion_to.clone(),
    }
}

/// One entry of cross traffic, summed over both directions.
pub(super) fn cross(load: &Load, totals: &LoadTotals, measured: Duration) -> CrossOutcome {
    let lost = match load.kind {
        TrafficKind::Pareto { .. } | TrafficKind::Poisson { .. } => {
            totals.sent.saturating_sub(totals.received)
        }
        _ => totals.retransmitted,
    };
    let completion = totals.completion.as_secs_f64();
    CrossOutcome {
        kind: load.kind.name().to_owned(),
        goodput_bps: (totals.delivered / measured).as_f64(),
        forward_goodput_bps: Some(
            (totals.delivered.saturating_sub(totals.delivered_reverse) / measured).as_f64(),
        ),
        reverse_goodput_bps: Some((totals.delivered_reverse / measured).as_f64()),
        loss_rate: ratio(lost, totals.sent),
        retransmitted_packets: totals.retransmitted,
        timeouts: totals.timeouts,
        completed: load.kind.finishes().then_some(totals.completed),
        completion_mean_s: (totals.completed > 0).then(|| completion / totals.completed as f64),
    }
}

fn ratio(part: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { part as f64 / total as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::LabPlan;

    #[test]
    fn law_a_finished_transfers_goodput_ignores_the_measured_interval() {
        let text = "duration = '1s'\n[path]\nrate = '10Mbit/s'\nrtt = '10ms'\nbuffer = '9pkt'\n\
                    [[transfer]]\nsize = '1MB'";
        let scenario = sweetspot_scenario::Scenario::parse(text).unwrap();
        let plan = LabPlan::new(&scenario);
        let second = Duration::from_secs;
        let trace =
            TransferTrace { began: second(3), ended: Some(second(5)), ..TransferTrace::default() };
        for end in [5, 20, 300] {
            let measured = (second(2), second(end));
            let size = scenario.transfers[0].size;
            let outcome = transfer(&plan.targets[0], &trace, size, measured, Duration::ZERO);
            // 1 MB in 2 s.
            assert_eq!((outcome.goodput_bps, outcome.completion_s), (4e6, Some(2.0)), "{end}");
        }
    }

    fn row(t_s: f64, bytes: u64) -> SeriesRow {
        SeriesRow { t_s, bytes, ..SeriesRow::default() }
    }

    #[test]
    fn delivered_bytes_are_interpolated_linearly_between_rows() {
        let began = Duration::from_secs(10);
        let rows = vec![row(1.0, 1000), row(2.0, 3000)];
        let trace = TransferTrace { began, rows, ..TransferTrace::default() };
        for (at, bytes) in
            [(9.0, 0.0), (10.5, 500.0), (11.0, 1000.0), (11.5, 2000.0), (99.0, 3000.0)]
        {
            assert_eq!(delivered(&trace, None, at), bytes, "{at}");
        }
        let ended = Some(Duration::from_secs(13));
        let trace = TransferTrace { ended, ..trace };
        assert_eq!(delivered(&trace, Some(Bytes::new(4000)), 12.5), 3500.0);
    }
}
