//! Pacing of less-than-best-effort uploads.

use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::MIN_PACE;
use crate::model::RESOLUTION;
use crate::{Controller, ControllerConfig, Input, Needs, Output, Reason, Rledbat, SizingPhase};

/// Paces an upload at the window of [`Rledbat`] per RTT, so that it yields like a less-than-best-effort download. It runs at
/// the sender. A queue lowers the rate at once, because it lengthens the RTT.
#[derive(Debug)]
pub struct BackgroundUpload {
    rledbat: Rledbat,
    window: Option<Bytes>,
    rtt: Option<Duration>,
    /// Segments retransmitted in the last report.
    retransmitted: Option<u64>,
    pacing: Option<Rate>,
    outputs: VecDeque<Output>,
}

impl BackgroundUpload {
    /// An upload before its first sample.
    pub fn new(config: &ControllerConfig) -> BackgroundUpload {
        BackgroundUpload {
            rledbat: Rledbat::background(config),
            window: None,
            rtt: None,
            retransmitted: None,
            pacing: None,
            outputs: VecDeque::new(),
        }
    }

    /// Turns windows into pacing rates. A change that is too small to matter is left out.
    fn pace(&mut self) {
        while let Some(output) = self.rledbat.poll_output() {
            match output {
                Output::Window(window) => self.window = window,
                other => self.outputs.push_back(other),
            }
        }
        let pacing = self.window.zip(self.rtt).map(|(window, rtt)| (window / rtt).max(MIN_PACE));
        let is_close = self.pacing.zip(pacing).is_some_and(|(before, pacing)| {
            (pacing.as_f64() - before.as_f64()).abs() <= before.as_f64() * RESOLUTION
        });
        if !is_close && self.pacing != pacing {
            self.pacing = pacing;
            self.outputs.push_back(Output::Pacing(pacing));
        }
    }
}

impl Controller for BackgroundUpload {
    fn handle(&mut self, now: Time, input: &Input) {
        match *input {
            Input::Sender(report) => {
                self.rledbat.begin_with(report.in_flight);
                let before = self.retransmitted.replace(report.retransmitted);
                let segments = before.map_or(0, |n| report.retransmitted.saturating_sub(n));
                self.rledbat.handle(now, &Input::OutOfOrder { segments });
            }
            Input::KernelRtt(rtt) => {
                self.rtt = Some(rtt);
                self.rledbat.handle(now, input);
            }
            _ => self.rledbat.handle(now, input),
        }
        self.pace();
    }

    /// The sender's samples end its rounds: an idle upload needs no timer.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn needs(&self) -> Needs {
        Needs { minimum_rtt: true, ..Needs::KERNEL }
    }

    fn phase(&self) -> SizingPhase {
        self.rledbat.phase()
    }

    fn window_reason(&self) -> Option<Reason> {
        self.rledbat.window_reason()
    }
}
