use serde::Serialize;
use sweetspot_scenario::{Outcome, Scenario, Transfer, TransferOutcome, time_under_way};

/// The measurements of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunMeasured {
    /// Payload acknowledged, bit/s; for a transfer that finished, over its duration.
    pub goodput_bps: f64,
    /// Mean RTT minus the propagation delay, seconds.
    pub delay_s: f64,
    /// Payload packets delivered.
    pub delivered: f64,
    /// Packets retransmitted.
    pub retransmitted: f64,
    /// Retransmission timeouts.
    pub timeouts: f64,
    /// Goodput of the cross traffic, bit/s.
    pub rivals_bps: f64,
}

/// When transfer `index` began, seconds; infinite if it never did.
fn began(scenario: &Scenario, outcome: &Outcome, index: usize) -> f64 {
    let transfer = &scenario.transfers[index];
    let before = index.checked_sub(1).filter(|_| transfer.follows).map_or(0.0, |before| {
        let took = outcome.transfers[before].completion_s.unwrap_or(f64::INFINITY);
        began(scenario, outcome, before) + took
    });
    before + transfer.start.as_secs_f64()
}

impl RunMeasured {
    /// The measurements in `outcome`, a run of `scenario`, summed over its transfers. If one transfer follows another, only the
    /// later one counts.
    pub fn of(scenario: &Scenario, outcome: &Outcome) -> RunMeasured {
        let follows = scenario.transfers.iter().any(|transfer| transfer.follows);
        let finished = scenario.transfers.iter().zip(&outcome.transfers).enumerate();
        let judged: Vec<(usize, (&Transfer, &TransferOutcome))> =
            finished.filter(|(_, (transfer, _))| transfer.follows == follows).collect();
        let transfers = || judged.iter().map(|(_, (_, outcome))| *outcome);
        let (from, until) = (scenario.warmup, scenario.warmup + scenario.duration);
        let propagation = scenario.path.mean_rtt(from, until);
        let delay = |rtt_mean_s: f64| (rtt_mean_s - propagation).max(0.0);
        let header = scenario.transfers.first().map_or(0.0, |t| t.tcp.header.as_f64());
        let packet_bits = (scenario.path.packet.as_f64() - header) * 8.0;
        let seconds = scenario.duration.as_secs_f64();
        let measured = (from.as_secs_f64(), until.as_secs_f64());
        let acknowledged = |index: usize, (transfer, finished): (&Transfer, &TransferOutcome)| {
            let active_s = match transfer.size {
                Some(_) => {
                    let began = began(scenario, outcome, index);
                    time_under_way(measured, began, finished.completion_s)
                }
                None => seconds,
            };
            finished.goodput_bps * active_s
        };
        let delivered: f64 = judged.iter().map(|(index, pair)| acknowledged(*index, *pair)).sum();
        let goodputs = judged.iter().map(|(index, (transfer, finished))| {
            let bits = acknowledged(*index, (transfer, finished));
            match (transfer.size, finished.completion_s) {
                (Some(size), Some(took)) => size.as_f64() * 8.0 / took,
                _ if transfer.follows => {
                    let left = until.as_secs_f64() - began(scenario, outcome, *index);
                    if left > 0.0 { bits / left } else { 0.0 }
                }
                _ => bits / seconds,
            }
        });
        RunMeasured {
            goodput_bps: goodputs.sum(),
            delay_s: transfers().map(|t| delay(t.rtt_mean_s)).sum::<f64>()
                / judged.len().max(1) as f64,
            delivered: delivered / packet_bits,
            retransmitted: transfers().map(|t| t.retransmitted_packets as f64).sum(),
            timeouts: transfers().map(|t| t.timeouts as f64).sum(),
            rivals_bps: outcome.cross.iter().map(|cross| cross.goodput_bps).sum(),
        }
    }

    /// The mean over several runs.
    pub(super) fn mean(runs: &[RunMeasured]) -> RunMeasured {
        let mean = |of: fn(&RunMeasured) -> f64| {
            runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64
        };
        RunMeasured {
            goodput_bps: mean(|run| run.goodput_bps),
            delay_s: mean(|run| run.delay_s),
            delivered: mean(|run| run.delivered),
            retransmitted: mean(|run| run.retransmitted),
            timeouts: mean(|run| run.timeouts),
            rivals_bps: mean(|run| run.rivals_bps),
        }
    }
}
