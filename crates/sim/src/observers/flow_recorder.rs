use sweetspot_scenario::{FinishedFlow, Scenario};
use sweetspot_units::{Duration, Time};

use crate::hosts::Flow;

/// Records connections of cross traffic one by one.
#[derive(Debug)]
pub(crate) struct FlowRecorder {
    /// Round-trip propagation delay of each hop.
    delays: Vec<Duration>,
    /// The number of measured transfers; their groups come before those with cross traffic.
    transfers: usize,
    /// Connections that finish before this time are not recorded.
    from: Time,
    /// The losses of each flow's current connection.
    losses: Vec<Vec<Time>>,
    finished: Vec<FinishedFlow>,
}

impl FlowRecorder {
    pub(crate) fn new(scenario: &Scenario) -> FlowRecorder {
        FlowRecorder {
            delays: (0..scenario.path.hops.len()).map(|i| scenario.path.between((i, i))).collect(),
            transfers: scenario.transfers.len(),
            from: Time::ZERO + scenario.warmup,
            losses: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// Records that routers dropped a data packet of a flow at `at`.
    pub(crate) fn note_loss(&mut self, flow: u32, at: Time) {
        let index = flow as usize;
        if self.losses.len() <= index {
            self.losses.resize_with(index + 1, Vec::new);
        }
        self.losses[index].push(at);
    }

    /// Records the connection of `flow` number `index`, which began at `began` and ended at `at`.
    pub(crate) fn note_finish(&mut self, index: u32, flow: &Flow, began: Time, at: Time) {
        let losses = self.losses.get_mut(index as usize).map(core::mem::take).unwrap_or_default();
        let entry = (flow.group as usize).checked_sub(self.transfers);
        let Some(entry) = entry.filter(|_| at >= self.from) else { return };
        let hops = &self.delays[usize::from(flow.hops.0)..=usize::from(flow.hops.1)];
        let propagation = hops.iter().fold(flow.delay * 2, |sum, delay| sum + *delay);
        self.finished.push(FinishedFlow {
            entry,
            packets: flow.sender.acknowledged(),
            duration_s: at.since(began).as_secs_f64(),
            propagation_s: propagation.as_secs_f64(),
            losses_s: losses.into_iter().map(Time::as_secs_f64).collect(),
        });
    }

    pub(crate) fn take_finished(&mut self) -> Vec<FinishedFlow> {
        core::mem::take(&mut self.finished)
    }
}
