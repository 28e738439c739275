use sweetspot_units::{Bytes, Duration, Time};

use crate::{Controller, Event, EventKind, Output, Phase, Probe, Train};

/// A controller that decides once, at the first byte, and never again: `kernel`, `fixed:SIZE`,
/// `max` and `bdp`.
#[derive(Debug)]
pub(crate) struct Static {
    decision: Decision,
    decided: bool,
    outputs: Vec<Output>,
}

/// What a static controller decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Touch nothing: the kernel's own autotuning rules.
    LeaveToKernel,
    /// The largest window the host allows.
    Open,
    /// Exactly this window.
    Window(Bytes),
}

impl Static {
    pub(crate) fn new(decision: Decision) -> Static {
        Static { decision, decided: false, outputs: Vec::new() }
    }

    fn decide(&mut self, now: Time) {
        if self.decided {
            return;
        }
        self.decided = true;
        // Outputs come out last first.
        match self.decision {
            Decision::LeaveToKernel => {}
            Decision::Open => self.outputs.push(Output::Window(None)),
            Decision::Window(window) => {
                let kind = EventKind::Limited { window };
                self.outputs.push(Output::Event(Event { at: now, kind }));
                self.outputs.push(Output::Window(Some(window)));
            }
        }
    }
}

impl Controller for Static {
    fn handle_data(&mut self, now: Time, _bytes: Bytes, _unread: Bytes) {
        self.decide(now);
    }
    fn handle_probe(&mut self, now: Time, _probe: &Probe) {
        self.decide(now);
    }
    fn handle_kernel_rtt(&mut self, _now: Time, _rtt: Duration) {}
    fn handle_train(&mut self, _now: Time, _train: &Train) {}
    fn handle_window(&mut self, _now: Time, _advertised: Bytes) {}
    fn handle_timeout(&mut self, now: Time) {
        self.decide(now);
    }
    fn poll_timeout(&self) -> Option<Time> {
        (!self.decided).then_some(Time::ZERO)
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop()
    }
    fn phase(&self) -> Phase {
        match self.decision {
            Decision::LeaveToKernel => Phase::HandsOff,
            _ => Phase::Holding,
        }
    }
}
