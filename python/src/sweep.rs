//! Support for sweeps: the values in a text, and a journal of finished runs.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sweetspot_experiment::{self as experiment, KeyNumbers, KeyUnit, Over, RunKey};

use crate::outcome::Outcome;
use crate::scenario::Scenario;

/// The values that ``--over KEY=TEXT`` stands for: a list with commas, ranges such as
/// ``50pkt..2000pkt:log:12``.
#[pyfunction]
pub fn sweep_values(key: &str, text: &str) -> PyResult<Vec<String>> {
    let over = Over::parse(&format!("{key}={text}")).map_err(|error| {
        let words = error.to_string();
        PyValueError::new_err(words.trim_start_matches("--over ").to_owned())
    })?;
    Ok(over.values)
}

/// The numbers in the values of a key, and the end of their column's name: its unit. ``None`` if the values have none.
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

/// Finished runs, as the journal beside ``sweetspot sweep --out`` keeps them.
#[pyclass(frozen, module = "sweetspot._core")]
#[derive(Debug)]
pub struct Journal(experiment::Journal);

#[pymethods]
impl Journal {
    /// Reads the text of a journal that a program of this ``version`` wrote.
    #[new]
    fn new(text: &str, version: &str) -> PyResult<Journal> {
        let journal = experiment::Journal::parse(text, version);
        journal.map(Journal).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// How many bytes of the text are whole lines.
    #[getter]
    fn whole(&self) -> usize {
        self.0.whole
    }

    /// The outcome of this run, where it is known.
    fn recall(&self, scenario: &Bound<'_, Scenario>, engine: &str, seed: u64) -> Option<Outcome> {
        let mut outcome = self.0.runs.get(&key(scenario, engine, seed))?.clone();
        outcome.scenario.clone_from(&scenario.get().inner.title);
        Some(Outcome(outcome))
    }

    /// The first line of a new journal, with its end.
    #[staticmethod]
    fn head(version: &str) -> String {
        experiment::Journal::head(version)
    }

    /// The line of one finished run, with its end.
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
