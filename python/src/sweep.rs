//! Support for sweeps: parsing the values of a key, and a journal of finished runs.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sweetspot_experiment::{self as experiment, KeyNumbers, KeyUnit, Over, RunKey};

use crate::outcome::Outcome;
use crate::scenario::Scenario;

/// The values for which ``--over KEY=TEXT`` stands: a list separated by commas, which may contain ranges such as
/// ``50pkt..2000pkt:log:12``.
#[pyfunction]
pub fn sweep_values(key: &str, text: &str) -> PyResult<Vec<String>> {
    let over = Over::parse(&format!("{key}={text}")).map_err(|error| {
        let words = error.to_string();
        PyValueError::new_err(words.trim_start_matches("--over ").to_owned())
    })?;
    Ok(over.values)
}

/// The numbers in the values of a key, and the suffix of their column's name, which is the unit. ``None`` if the
/// values have no numbers.
#[pyfunction]
pub fn sweep_numbers(values: Vec<String>) -> Option<(&'static str, Vec<Option<f64>>)> {
    let found = KeyNumbers::of(values.iter().map(String::as_str))?;
    let unit = match found.unit {
        KeyUnit::Packets => "packets",
        KeyUnit::Bytes => "bytes",
        KeyUnit::BitsPerSecond => "bps",
        KeyUnit::Seconds => "s",
        _ => "number",
    };
    Some((unit, found.numbers))
}

/// Finished runs, as stored in the journal beside ``sweetspot sweep --out``.
#[pyclass(frozen, module = "sweetspot._core")]
#[derive(Debug)]
pub struct Journal(experiment::Journal);

#[pymethods]
impl Journal {
    /// Parses a journal written by a program of this ``version``.
    #[new]
    fn new(text: &str, version: &str) -> PyResult<Journal> {
        let journal = experiment::Journal::parse(text, version);
        journal.map(Journal).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Length of the complete lines in the text, bytes.
    #[getter]
    fn whole(&self) -> usize {
        self.0.whole
    }

    /// The outcome of this run, if it is stored.
    fn recall(&self, scenario: &Bound<'_, Scenario>, engine: &str, seed: u64) -> Option<Outcome> {
        let mut outcome = self.0.runs.get(&key(scenario, engine, seed))?.clone();
        outcome.scenario.clone_from(&scenario.get().inner.title);
        Some(Outcome(outcome))
    }

    /// The first line of a new journal, including its line end.
    #[staticmethod]
    fn head(version: &str) -> String {
        experiment::Journal::head(version)
    }

    /// The line for one finished run, including its line end.
    #[staticmethod]
    fn entry(
        scenario: &Bound<'_, Scenario>,
        engine: &str,
        seed: u64,
        outcome: &Bound<'_, Outcome>,
    ) -> String {
        experiment::Journal::entry(&key(scenario, engine, seed), &outcome.get().0)
    }
}

fn key(scenario: &Bound<'_, Scenario>, engine: &str, seed: u64) -> RunKey {
    let scenario = sweetspot_scenario::Scenario { seed, ..scenario.get().inner.clone() };
    RunKey::of(engine, &scenario)
}
