use sweetspot_units::{Bytes, Duration, Time};

use crate::{Controller, Output, Phase, Probe, Setting, Train};

/// Section VII-A to the letter.
#[derive(Debug)]
pub struct Paper {}

impl Paper {
    /// A controller before the first byte.
    pub fn new(_setting: &Setting) -> Paper {
        Paper {}
    }
}

impl Controller for Paper {
    fn handle_data(&mut self, _now: Time, _bytes: Bytes, _unread: Bytes) {}
    fn handle_probe(&mut self, _now: Time, _probe: &Probe) {}
    fn handle_kernel_rtt(&mut self, _now: Time, _rtt: Duration) {}
    fn handle_train(&mut self, _now: Time, _train: &Train) {}
    fn handle_window(&mut self, _now: Time, _advertised: Bytes) {}
    fn handle_timeout(&mut self, _now: Time) {}
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
    fn poll_output(&mut self) -> Option<Output> {
        None
    }
    fn phase(&self) -> Phase {
        Phase::Measuring
    }
}
