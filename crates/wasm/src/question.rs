use serde::Deserialize;
use sweetspot_scenario::{Engine, NoRecorder, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_theory::engine::Theory;
use sweetspot_units::Duration;

use crate::AnswerError;
use crate::curve::ThroughputCurve;
use crate::series::{SampledRun, Samples};

/// A question about a scenario, given as the text of a scenario file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// The outcome, identical to the output of `sweetspot run --json` byte for byte. `wall_s` is
    /// zero, because there is no clock here.
    Run {
        /// The scenario.
        scenario: String,
        /// The engine.
        #[serde(default)]
        engine: EngineName,
    },
    /// The time series of the first transfer, and the outcome.
    Series {
        /// The scenario.
        scenario: String,
        /// Interval between samples, seconds.
        interval_s: f64,
    },
    /// R(S) of the first transfer by closed forms, and the sweet spot.
    Curve {
        /// The scenario.
        scenario: String,
        /// The windows S, bytes.
        windows_bytes: Vec<u64>,
    },
}

/// The pure engines: they need no clock and no operating system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineName {
    /// The packet-level simulator.
    #[default]
    Sim,
    /// Closed forms.
    Theory,
}

/// Answers a [`Question`] in JSON with JSON: an outcome, a [`SampledRun`], a [`ThroughputCurve`] or
/// `{"error": "why not"}`.
pub fn answer(question: &str) -> String {
    answered(question).unwrap_or_else(|error| {
        let error = serde_json::json!({ "error": error.to_string() });
        error.to_string()
    })
}

fn answered(question: &str) -> Result<String, AnswerError> {
    let answer = match serde_json::from_str(question).map_err(AnswerError::Question)? {
        Question::Run { scenario, engine } => {
            let engine: &dyn Engine = match engine {
                EngineName::Sim => &Simulator,
                EngineName::Theory => &Theory,
            };
            let outcome = engine.run(&Scenario::parse(&scenario)?, &mut NoRecorder)?;
            serde_json::to_string_pretty(&outcome)
        }
        Question::Series { scenario, interval_s } => {
            let scenario = Scenario::parse(&scenario)?;
            let mut samples = Samples::every(Duration::from_secs_f64(interval_s), &scenario)?;
            let outcome = Simulator.run(&scenario, &mut samples)?;
            serde_json::to_string(&SampledRun { outcome, samples })
        }
        Question::Curve { scenario, windows_bytes } => {
            let scenario = Scenario::parse(&scenario)?;
            serde_json::to_string(&ThroughputCurve::of(&scenario, &windows_bytes)?)
        }
    };
    Ok(answer?)
}
