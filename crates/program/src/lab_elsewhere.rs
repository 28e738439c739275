//! The engine `lab` outside Linux. It runs nothing and gives the reason.

use serde::Serialize;
use sweetspot_scenario::{Engine, EngineError, EngineResult, Outcome, Recorder, Scenario};
use sweetspot_units::Duration;

/// The engine.
#[derive(Debug)]
pub struct Lab;

/// The emulator's certificate of a run; never made outside Linux.
#[derive(Debug, Clone, Serialize)]
pub struct Certificate {
    /// As text.
    pub text: String,
}

/// A run; never made outside Linux.
pub struct LabRun {
    /// The result.
    pub outcome: Outcome,
    /// The emulator's certificate.
    pub certificate: Certificate,
}

impl LabRun {
    /// Hands the time series to `recorder`.
    pub fn record(&self, _: &Scenario, _: &mut dyn Recorder) {}
}

impl Lab {
    /// Fails.
    pub fn run_watched(
        &self,
        _: &Scenario,
        _: &mut dyn FnMut(Duration),
    ) -> Result<LabRun, EngineError> {
        let reason = "it runs transfers on Linux's TCP, which this system lacks; use --engine sim"
            .to_owned();
        Err(EngineError::Unsupported { engine: self.name(), reason })
    }
}

impl Engine for Lab {
    fn name(&self) -> &'static str {
        "lab"
    }

    fn run(&self, scenario: &Scenario, _: &mut dyn Recorder) -> EngineResult {
        self.run_watched(scenario, &mut |_| {}).map(|run| run.outcome)
    }
}
