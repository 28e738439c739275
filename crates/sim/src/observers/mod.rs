//! The observers record a run as it happens, and do not change it.

mod flow_recorder;
mod host_monitor;
mod path_monitor;
mod sampler;
mod totals;

pub(crate) use flow_recorder::FlowRecorder;
pub(crate) use host_monitor::{HostMonitor, SenderView};
pub(crate) use path_monitor::PathMonitor;
pub(crate) use sampler::{Sampler, mean_rate, utilisation};
pub(crate) use totals::GroupTotals;

use sweetspot_tcp::{Receiver, Sender};
use sweetspot_units::{Deadline, Time};

use crate::hosts::Flow;

pub(crate) struct Observers {
    pub times: Vec<Time>,
    /// The sample times at which all counters are read. Packets that leave the routers after the next of these times are held
    /// back until then.
    pub counts: Vec<Time>,
    pub monitors: Vec<HostMonitor>,
    pub totals: Vec<GroupTotals>,
    pub path: PathMonitor,
    /// A record of each connection of cross traffic, if one is requested.
    pub recorder: Option<FlowRecorder>,
}

impl Observers {
    pub(crate) fn new(path: PathMonitor) -> Observers {
        Observers {
            times: Vec::new(),
            counts: Vec::new(),
            monitors: Vec::new(),
            totals: Vec::new(),
            path,
            recorder: None,
        }
    }

    pub(crate) fn next_count(&self, now: Time) -> Deadline {
        self.counts.iter().find(|count| **count > now).copied().into()
    }

    /// Samples the source of a measured transfer for all observations before `at`, which the source is about to pass.
    #[inline]
    pub(crate) fn watch_source(&mut self, index: usize, at: Time, sender: &Sender) {
        self.monitors[index].watch_source(&self.times, at, sender);
    }

    /// Samples the sink of a measured transfer for all observations before `at`, which the sink is about to pass.
    #[inline]
    pub(crate) fn watch_sink(&mut self, index: usize, at: Time, receiver: &Receiver) {
        self.monitors[index].watch_sink(&self.times, at, receiver);
    }

    /// Drops the samples of the current observation.
    pub(crate) fn clear_samples(&mut self) {
        for monitor in &mut self.monitors {
            monitor.clear_samples();
        }
    }

    /// Records that routers dropped a data packet of the flow with this index.
    pub(crate) fn note_drop(&mut self, index: u32, flow: &Flow, at: Time) {
        if let Some(monitor) = self.monitors.get_mut(index as usize) {
            monitor.dropped += 1;
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.note_loss(index, at);
        }
        self.totals[flow.group as usize].dropped += 1;
    }

    /// Records that all data of a connection that began at `began` are acknowledged.
    pub(crate) fn note_finish(&mut self, index: u32, flow: &Flow, began: Time, at: Time) {
        let totals = &mut self.totals[flow.group as usize];
        totals.completed += 1;
        totals.completion += u128::from(at.since(began).as_nanos());
        if let Some(recorder) = &mut self.recorder {
            recorder.note_finish(index, flow, began, at);
        }
    }
}
