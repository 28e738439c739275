use serde::Serialize;
use sweetspot_scenario::{Outcome, Scenario};

/// The measurements of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunMeasured {
    /// Payload acknowledged, bit/s; for a transfer with an end, over its duration.
    pub goodput_bps: f64,
    /// Mean round-trip time beyond propagation, seconds.
    pub delay_s: f64,
    /// Packets of payload delivered.
    pub delivered: f64,
    /// Packets retransmitted.
    pub resent: f64,
    /// Retransmission timeouts.
    pub timeouts: f64,
    /// Goodput of cross traffic, bit/s.
    pub rivals_bps: f64,
}

impl RunMeasured {
    /// The measurements in `outcome`, a run of `scenario`; several transfers are summed.
    pub fn of(scenario: &Scenario, outcome: &Outcome) -> RunMeasured {
        let transfers = &outcome.transfers;
        let (from, until) = (scenario.warmup, scenario.warmup + scenario.duration);
        let propagation = scenario.path.mean_rtt(from, until);
        let delay = |rtt_mean_s: f64| (rtt_mean_s - propagation).max(0.0);
        let header = scenario.transfers.first().map_or(0.0, |t| t.tcp.header.as_f64());
        let bits = (scenario.path.packet.as_f64() - header) * 8.0;
        let seconds = scenario.duration.as_secs_f64();
        let acknowledged: f64 = transfers.iter().map(|t| t.goodput_bps).sum();
        let sizes = scenario.transfers.iter().map(|transfer| transfer.size);
        let goodputs = transfers.iter().zip(sizes).map(|(transfer, size)| {
            match (size, transfer.completion_s) {
                (Some(size), Some(took)) => size.as_f64() * 8.0 / took,
                _ => transfer.goodput_bps,
            }
        });
        RunMeasured {
            goodput_bps: goodputs.sum(),
            delay_s: transfers.iter().map(|t| delay(t.rtt_mean_s)).sum::<f64>()
                / transfers.len().max(1) as f64,
            delivered: acknowledged * seconds / bits,
            resent: transfers.iter().map(|t| t.retransmitted_packets as f64).sum(),
            timeouts: transfers.iter().map(|t| t.timeouts as f64).sum(),
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
            resent: mean(|run| run.resent),
            timeouts: mean(|run| run.timeouts),
            rivals_bps: mean(|run| run.rivals_bps),
        }
    }
}
