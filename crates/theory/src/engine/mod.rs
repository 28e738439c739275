//! The engine of closed forms. If a formula covers a scenario, it returns an outcome like the other
//! engines, with the formulas and their assumptions. Otherwise it returns the reason why no formula
//! covers it.

mod elephants;
mod outcome;
mod single;
mod steady;
mod terms;
mod window;

use sweetspot_scenario::{Engine, EngineError, EngineResult, Recorder, Scenario};

use crate::TheoryError;
use crate::path::saturation::{self, SweetSpot};

/// The closed forms as an engine. It draws no random numbers, so the seed has no effect. Its outcomes
/// have no time series.
#[derive(Debug, Clone, Copy, Default)]
pub struct Theory;

impl Engine for Theory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, scenario: &Scenario, _recorder: &mut dyn Recorder) -> EngineResult {
        let terms = terms::Terms::of(scenario)?;
        let steady = match &terms.cross {
            terms::KnownCross::Elephants { .. } => elephants::steady(&terms)?,
            _ => single::steady(&terms)?,
        };
        Ok(outcome::outcome(scenario, &terms, steady))
    }
}

/// The windows, in bytes on the wire, with which the single transfer of `scenario` fills the path
/// beside its cross traffic without losses.
///
/// # Errors
/// If no closed form gives them.
pub fn sweet_spot(scenario: &Scenario) -> Result<SweetSpot, EngineError> {
    let terms = terms::Terms::of(scenario)?;
    if terms.transfers.len() > 1 {
        return Err(not_covered("several transfers share one sweet spot"));
    }
    if terms.loss.get() > 0.0 {
        return Err(not_covered("a path that loses at random has no window without loss"));
    }
    match &terms.cross {
        terms::KnownCross::Elephants { .. } => elephants::sweet_spot(&terms),
        _ => Ok(saturation::sweet_spot(&terms.left()?)),
    }
}

const NAME: &str = "theory";

/// The error for a scenario without a closed form.
fn not_covered(because: impl Into<String>) -> EngineError {
    EngineError::NotCovered { because: because.into() }
}

impl From<TheoryError> for EngineError {
    fn from(error: TheoryError) -> EngineError {
        not_covered(match error {
            TheoryError::NotCovered { because } => because.to_owned(),
            other => other.to_string(),
        })
    }
}
