//! The engines by their names, for `--engine`.

use core::fmt;

use clap::ValueEnum;
use serde::Serialize;
#[cfg(target_os = "linux")]
use sweetspot_lab::{Certificate, Lab};
use sweetspot_scenario::{Engine, EngineError, Outcome, Recorder, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_system::clock;
use sweetspot_theory::engine::Theory;

use crate::progress::RealTimeProgress;

#[cfg(not(target_os = "linux"))]
use crate::lab_elsewhere::{Certificate, Lab};

/// The engines by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// Packet by packet, deterministic
    Sim,
    /// Closed forms, with their formulas and assumptions; exit code 3 if none covers
    /// the scenario
    Theory,
    /// This machine's own kernel across an emulated path, in real time
    Lab,
}

/// An engine's result. In serialised form it is the outcome, with the certificate as an additional
/// member if there is one.
#[derive(Debug, Clone, Serialize)]
pub struct EngineAnswer {
    /// The outcome, with the time that the run took.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The emulator's certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            EngineName::Sim => "sim",
            EngineName::Theory => "theory",
            EngineName::Lab => "lab",
        })
    }
}

impl EngineName {
    /// The engine with this name.
    pub fn engine(self) -> &'static (dyn Engine + Sync) {
        match self {
            EngineName::Sim => &Simulator,
            EngineName::Theory => &Theory,
            EngineName::Lab => &Lab,
        }
    }

    /// Runs `scenario` and passes its time series to `recorder`.
    pub fn run(
        self,
        scenario: &Scenario,
        recorder: &mut dyn Recorder,
    ) -> Result<EngineAnswer, EngineError> {
        let started = clock::now();
        let (mut outcome, certificate) = match self {
            EngineName::Sim => (Simulator.run(scenario, recorder)?, None),
            EngineName::Theory => (Theory.run(scenario, recorder)?, None),
            EngineName::Lab => {
                let mut progress = RealTimeProgress::new(scenario.warmup + scenario.duration);
                let finished = Lab.run_watched(scenario, &mut |at| progress.show(at))?;
                finished.record(scenario, recorder);
                (finished.outcome, Some(finished.certificate))
            }
        };
        outcome.wall_s = clock::now().since(started).as_secs_f64();
        Ok(EngineAnswer { outcome, certificate })
    }
}
