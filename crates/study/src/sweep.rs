use sweetspot_scenario::{Engine, Outcome, Scenario};

use crate::play::play_all;
use crate::{StudyError, Workers};

/// One key of a scenario takes several values, everything else stays: the same seed, so the
/// same cross traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// The scenario as written.
    pub text: String,
    /// What is set besides, as `key=value`.
    pub overrides: Vec<String>,
    /// The key, as `--set` takes it.
    pub key: String,
    /// Its values, as written.
    pub values: Vec<String>,
}

/// One value and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepPoint {
    /// The value, as written.
    pub value: String,
    /// The outcome.
    pub outcome: Outcome,
}

impl Sweep {
    /// The scenarios, one per value.
    pub fn scenarios(&self) -> Result<Vec<Scenario>, StudyError> {
        let scenario = |value: &String| {
            let mut overrides = self.overrides.clone();
            overrides.push(format!("{}={value}", self.key));
            Ok(Scenario::parse_with(&self.text, &overrides)?)
        };
        self.values.iter().map(scenario).collect()
    }

    /// Plays them all.
    pub fn run<E: Engine + Sync>(
        &self,
        engine: &E,
        workers: Workers,
    ) -> Result<Vec<SweepPoint>, StudyError> {
        let outcomes = play_all(engine, &self.scenarios()?, workers)?;
        let points = self.values.iter().cloned().zip(outcomes);
        Ok(points.map(|(value, outcome)| SweepPoint { value, outcome }).collect())
    }
}
