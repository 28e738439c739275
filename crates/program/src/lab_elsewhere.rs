//! The engine `lab` on systems other than Linux: every run fails with the reason.

use serde::Serialize;
use sweetspot_scenario::{Engine, EngineError, EngineResult, Outcome, Recorder, Scenario};
use sweetspot_units::Duration;

/// The engine, which cannot run anything here.
#[derive(Debug)]
pub struct Lab;

/// The emulator's certificate of a run, which never exists here.
#[derive(Debug, Clone, Serialize)]
pub struct Certificate {
    /// The certificate as text.
    pub text: String,
}

/// A run, which never exists here.
pub struct LabRun {
    /// The result.
    pub outcome: Outcome,
    /// The emulator's certificate.
    pub certificate: Certificate,
}

impl LabRun {
    /// Does nothing.
    pub fn record(&self, _: &Scenario, _: &mut dyn Recorder) {}
}

impl Lab {
    /// Always fails.
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
