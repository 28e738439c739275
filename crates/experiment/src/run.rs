//! Runs scenarios by an engine, and applies the changes that experiments make to scenarios.

use sweetspot_scenario::{Engine, EngineError, NoRecorder, Outcome, Scenario, ScenarioError};
use sweetspot_sizing::Sizing;
use sweetspot_theory::TheoryError;
use sweetspot_units::Volume;
use thiserror::Error;

use crate::{SweepError, Workers};

/// The reason why a study failed.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A text is not a valid scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The engine cannot run one of the scenarios.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// No closed form covers one of a sweep's combinations.
    #[error("{point}: {source}")]
    PointNotCovered {
        /// The combination's values, by key.
        point: String,
        /// The engine's reason.
        source: EngineError,
    },
    /// The scenario has no transfer.
    #[error("there is no [[transfer]]; add one to measure")]
    NoTransfer,
    /// A closed form does not hold.
    #[error(transparent)]
    Theory(#[from] TheoryError),
    /// The sweep is impossible.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// No figure or table has this name.
    #[error(
        "unknown figure {name}{nearest}; known are all, bdp, drs, heffner, blog, router, {known}"
    )]
    UnknownFigure {
        /// The name as typed.
        name: String,
        /// The most similar valid name, as a question; empty if none is similar.
        nearest: String,
        /// All valid names.
        known: String,
    },
    /// The part of a link that can be simulated is too small for an average.
    #[error("{0}")]
    TooSmall(String),
    /// A table of reference numbers cannot be read.
    #[error("{table}, line {line}: {reason}")]
    Reference {
        /// Name of the table.
        table: &'static str,
        /// Line number, counted from 1.
        line: usize,
        /// The fault.
        reason: String,
    },
}

/// The outcomes of `scenarios` in their order, or the first error.
pub fn run_all<E: Engine + Sync + ?Sized>(
    engine: &E,
    scenarios: &[Scenario],
    workers: Workers,
) -> Result<Vec<Outcome>, StudyError> {
    let outcomes = workers.map(scenarios, |scenario| engine.run(scenario, &mut NoRecorder));
    outcomes.into_iter().map(|outcome| Ok(outcome?)).collect()
}

/// Goodput of the first transfer, bit/s.
pub fn goodput(outcome: &Outcome) -> f64 {
    outcome.transfers.first().map_or(0.0, |transfer| transfer.goodput_bps)
}

/// `scenario` with this sizing in all transfers.
pub fn with_sizing(scenario: &Scenario, sizing: Sizing) -> Scenario {
    let mut scenario = scenario.clone();
    for transfer in &mut scenario.transfers {
        transfer.sizing = sizing;
    }
    scenario
}

/// `scenario` with a fixed window of `packets` in its first transfer.
pub fn with_window(scenario: &Scenario, packets: u64) -> Scenario {
    let mut scenario = scenario.clone();
    if let Some(transfer) = scenario.transfers.first_mut() {
        transfer.sizing = Sizing::Fixed(Volume::Packets(packets));
    }
    scenario
}
