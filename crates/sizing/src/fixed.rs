use sweetspot_units::{Bytes, Time};

use crate::{Controller, EventKind, Input, Needs, Output, SizingEvent, SizingPhase};

/// A controller that sets its window once, before the first byte, and keeps it until all
/// connections end: `kernel`, `fixed:SIZE`, `max` and `bdp`.
#[derive(Debug)]
pub(crate) struct Static {
    decision: Decision,
    decided: bool,
    outputs: Vec<Output>,
}

/// The window of a static controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// No limit: the kernel's autotuning decides.
    LeaveToKernel,
    /// The largest window the host allows.
    Open,
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
        // Outputs are popped from the end, so the last one is pushed first.
        match self.decision {
            Decision::LeaveToKernel => {}
            Decision::Open => self.outputs.push(Output::Window(None)),
            Decision::Window(window) => {
                let kind = EventKind::Limited { window };
                self.outputs.push(Output::Event(SizingEvent { at: now, kind }));
                self.outputs.push(Output::Window(Some(window)));
            }
        }
    }
}

impl Controller for Static {
    fn handle(&mut self, now: Time, input: &Input) {
        match (input, self.decision) {
            (Input::End, Decision::LeaveToKernel) => {}
            (Input::End, Decision::Open | Decision::Window(_)) => {
                self.decided = false;
                self.outputs.push(Output::Window(None));
            }
            (
                Input::Data { .. }
                | Input::Probe(_)
                | Input::Sender(_)
                | Input::KernelRtt(_)
                | Input::MinimumRtt(_)
                | Input::OutOfOrder { .. }
                | Input::Train(_)
                | Input::Window { .. }
                | Input::Timeout,
                _,
            ) => self.decide(now),
        }
    }
    fn poll_timeout(&self) -> Option<Time> {
        (!self.decided).then_some(Time::ZERO)
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop()
    }
    fn needs(&self) -> Needs {
        Needs::NOTHING
    }
    fn phase(&self) -> SizingPhase {
        match self.decision {
            Decision::LeaveToKernel => SizingPhase::HandsOff,
            Decision::Open | Decision::Window(_) => SizingPhase::Holding,
        }
    }
}
