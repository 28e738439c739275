//! Converts a steady state to an outcome.

use sweetspot_scenario::{
    BottleneckOutcome, CrossOutcome, Derivation, Outcome, Scenario, TransferOutcome,
};

use super::NAME;
use super::steady::Steady;
use super::terms::Terms;

pub(super) fn outcome(scenario: &Scenario, terms: &Terms<'_>, steady: Steady) -> Outcome {
    let capacity = terms.path.capacity().as_f64();
    let seconds = scenario.duration.as_secs_f64();
    let packet_bits = terms.packet.as_f64() * 8.0;
    let transfers = terms.transfers.iter().zip(&steady.flows).map(|(transfer, flow)| {
        let payload = terms.payload_share(transfer);
        let lost = flow.rate.as_f64() * seconds / packet_bits * flow.loss;
        TransferOutcome {
            goodput_bps: flow.rate.as_f64() * payload,
            rtt_mean_s: flow.rtt_mean.as_secs_f64(),
            rtt_p99_s: flow.rtt_p99.as_secs_f64(),
            loss_rate: flow.loss,
            retransmitted_packets: libm::round(lost) as u64,
            timeouts: 0,
            window_final_bytes: flow.window.scaled(payload).get(),
            completion_s: None,
            sizing: transfer.sizing.to_string(),
            events: Vec::new(),
        }
    });
    let all: f64 = steady.flows.iter().map(|flow| flow.rate.as_f64()).sum();
    let lost: f64 = steady.flows.iter().map(|flow| flow.rate.as_f64() * flow.loss).sum();
    let sent = all + steady.cross.as_f64();
    let used = terms.used.as_f64();
    let (mean, max) = steady.backlog;
    let mut assumptions = terms.assumptions.clone();
    assumptions.extend(steady.assumptions);
    assumptions.extend(terms.transfers.first().and_then(|transfer| terms.units(transfer)));
    Outcome {
        scenario: scenario.title.clone(),
        engine: NAME.into(),
        seed: scenario.seed,
        version: env!("CARGO_PKG_VERSION").into(),
        transfers: transfers.collect(),
        cross: crosses(scenario, used, steady.cross.as_f64()),
        bottleneck: BottleneckOutcome {
            utilisation: (sent / capacity).min(1.0),
            utilisation_before: used / capacity,
            loss_rate: if sent > 0.0 { lost / sent } else { 0.0 },
            queue_mean_packets: mean.as_f64() / terms.packet.as_f64(),
            // A partly sent packet still counts as queued.
            queue_max_packets: max.get().div_ceil(terms.packet.get()),
            queue_delay_mean_s: mean.as_f64() * 8.0 / capacity,
        },
        derivation: Some(Derivation { formulas: steady.formulas, assumptions }),
        ..Outcome::default()
    }
}

/// Every entry keeps the same share of its rate from before the transfer. This applies to both directions if
/// the reverse path mirrors the forward path and the entry's rate depends on its RTT.
fn crosses(scenario: &Scenario, before: f64, after: f64) -> Vec<CrossOutcome> {
    use sweetspot_scenario::{Reverse, TrafficKind};
    let left = if before > 0.0 { after / before } else { 0.0 };
    let ways = if scenario.path.reverse == Reverse::Mirror { 1.0 } else { 0.0 };
    let alone = |kind: &TrafficKind, rtt| match kind {
        TrafficKind::Pareto { count, rate, .. } | TrafficKind::Poisson { count, rate } => {
            *count as f64 * rate.as_f64()
        }
        TrafficKind::Elephants { count, window: Some(window) } => {
            let bits = window.in_bytes(scenario.path.packet).as_f64() * 8.0;
            *count as f64 * bits * super::terms::mean_inverse(rtt)
        }
        _ => 0.0,
    };
    let outcome = |cross: &sweetspot_scenario::Cross| {
        let payload = scenario.path.packet.saturating_sub(cross.tcp.header).as_f64()
            / scenario.path.packet.as_f64();
        // The ACKs of reverse elephants wait in the transfer's queue; other traffic yields only to the
        // transfer's ACKs.
        let reverse = match cross.kind {
            TrafficKind::Elephants { .. } => ways * left,
            _ => ways,
        };
        CrossOutcome {
            kind: cross.kind.name().into(),
            goodput_bps: alone(&cross.kind, cross.rtt) * (left + reverse) * payload,
            forward_goodput_bps: Some(alone(&cross.kind, cross.rtt) * left * payload),
            reverse_goodput_bps: Some(alone(&cross.kind, cross.rtt) * reverse * payload),
            ..CrossOutcome::default()
        }
    };
    scenario.cross.iter().map(outcome).collect()
}

#[cfg(test)]
mod tests {
    use sweetspot_scenario::{Engine, NoRecorder};

    use super::*;
    use crate::engine::Theory;

    /// 100 packets of 1500 B in 100 ms and its serialisation are just below 12 Mbit/s on the wire; 1000 B of each are payload.
    #[test]
    fn formulas_in_units_other_than_goodput_name_both_units() {
        let of = |header: &str| {
            let text = format!(
                "duration = '9s'\n[path]\nrate = '1Gbit/s'\nrtt = '100ms'\nbuffer = '9pkt'\npacket = '1500B'\n\
                 [[transfer]]\nsizing = 'fixed:100pkt'\ncongestion = 'reno'\nheader = '{header}'"
            );
            let outcome = Theory.run(&Scenario::parse(&text).unwrap(), &mut NoRecorder).unwrap();
            (outcome.transfers[0].goodput_bps, outcome.derivation.unwrap())
        };
        let (whole, same) = of("0B");
        let (payload, other) = of("500B");
        assert!((payload / whole - 1000.0 / 1500.0).abs() < 1e-9, "{payload} of {whole}");
        assert_eq!(same.formulas, other.formulas);
        assert_eq!(other.assumptions.len(), same.assumptions.len() + 1);
        let units = other.assumptions.last().unwrap();
        assert!(units.contains("packets of 1500 B") && units.contains("the 1000 B of payload"));
    }
}
