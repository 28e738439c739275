use std::sync::atomic::{AtomicUsize, Ordering};

use sweetspot_lab::Lab;
use sweetspot_scenario::{Engine, EngineError, Outcome, Recorder, Scenario};

/// The lab. Reports why a run's certificate is not trusted, and counts certified and other runs.
#[derive(Debug, Default)]
pub struct CertifiedLab {
    runs: AtomicUsize,
    trusted: AtomicUsize,
}

impl CertifiedLab {
    /// The number of certified runs, in words; `None` if there was no run.
    pub fn verdict(&self) -> Option<String> {
        let (runs, trusted) =
            (self.runs.load(Ordering::Relaxed), self.trusted.load(Ordering::Relaxed));
        (runs > 0).then(|| format!("{trusted} of {runs} runs in the lab certified"))
    }
}

impl Engine for CertifiedLab {
    fn name(&self) -> &'static str {
        Lab.name()
    }

    fn run(
        &self,
        scenario: &Scenario,
        recorder: &mut dyn Recorder,
    ) -> Result<Outcome, EngineError> {
        let finished = Lab.run(scenario).map_err(EngineError::from)?;
        self.runs.fetch_add(1, Ordering::Relaxed);
        if finished.certificate.trust {
            self.trusted.fetch_add(1, Ordering::Relaxed);
        } else {
            let reasons = finished.certificate.reasons.join("; ");
            err!("{}: the emulation was not accurate: {reasons}", scenario.title);
        }
        finished.record(scenario, recorder);
        Ok(finished.outcome)
    }
}
