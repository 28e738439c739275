use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sweetspot_report::{RunSeries, parquet};
use sweetspot_scenario::{Engine, NoRecorder, Recorder};
use sweetspot_sim::{ControllerMaker, Simulator, run_steered};
use sweetspot_theory::engine::Theory;
use sweetspot_units::Duration;

use crate::controller::{Bridge, Failure};
use crate::outcome::Outcome;
use crate::scenario::{EngineError, Scenario};

/// Runs a scenario and returns its outcome. Releases the GIL during the run. ``controllers`` has a
/// controller written in Python for each transfer, in file order; ``None`` keeps the scenario's
/// own.
#[pyfunction]
#[pyo3(signature = (scenario, engine = "sim", seed = None, controllers = Vec::new()))]
pub fn run(
    py: Python<'_>,
    scenario: &Bound<'_, Scenario>,
    engine: &str,
    seed: Option<u64>,
    controllers: Vec<Option<Py<PyAny>>>,
) -> PyResult<Outcome> {
    run_engine(py, scenario, (engine, seed), controllers, &mut NoRecorder)
}

/// Runs a scenario and returns its outcome and its time series, as the bytes of the Parquet file
/// that ``sweetspot run --series`` writes.
#[pyfunction]
#[pyo3(signature = (scenario, interval = "100ms", seed = None, controllers = Vec::new()))]
pub fn series<'py>(
    py: Python<'py>,
    scenario: &Bound<'py, Scenario>,
    interval: &str,
    seed: Option<u64>,
    controllers: Vec<Option<Py<PyAny>>>,
) -> PyResult<(Outcome, Bound<'py, PyBytes>)> {
    let bad = |why: String| PyValueError::new_err(format!("interval: {why}"));
    let interval: Duration = interval.parse().map_err(|error| bad(format!("{error}")))?;
    let mut recorder =
        RunSeries::of(&scenario.get().inner, interval).map_err(|error| bad(error.to_string()))?;
    let outcome = run_engine(py, scenario, ("sim", seed), controllers, &mut recorder)?;
    let bytes = py
        .detach(|| parquet(&recorder.columns(&outcome.0)))
        .map_err(|error| EngineError::new_err(error.to_string()))?;
    Ok((outcome, PyBytes::new(py, &bytes)))
}

fn run_engine(
    py: Python<'_>,
    scenario: &Bound<'_, Scenario>,
    (engine, seed): (&str, Option<u64>),
    controllers: Vec<Option<Py<PyAny>>>,
    recorder: &mut (impl Recorder + Send),
) -> PyResult<Outcome> {
    let mut scenario = scenario.get().inner.clone();
    scenario.seed = seed.unwrap_or(scenario.seed);
    let (given, transfers) = (controllers.len(), scenario.transfers.len());
    if given > transfers {
        return Err(PyValueError::new_err(format!(
            "{given} controllers for {transfers} transfers; give one for each, or None"
        )));
    }
    let started = seconds(py)?;
    let mut outcome = match engine {
        "sim" if given > 0 => steered(py, &scenario, controllers, recorder)?,
        "sim" => py
            .detach(|| Simulator.run(&scenario, recorder))
            .map_err(|error| EngineError::new_err(error.to_string()))?,
        "theory" if given > 0 => {
            let reason = "a controller decides by what happens; only engine \"sim\" runs one";
            return Err(PyValueError::new_err(reason));
        }
        "theory" => Theory
            .run(&scenario, recorder)
            .map_err(|error| EngineError::new_err(error.to_string()))?,
        other => {
            let known = "known are sim, theory";
            return Err(PyValueError::new_err(format!("unknown engine \"{other}\"; {known}")));
        }
    };
    outcome.wall_s = seconds(py)? - started;
    Ok(Outcome(outcome))
}

/// The time on Python's own clock.
fn seconds(py: Python<'_>) -> PyResult<f64> {
    py.import("time")?.call_method0("perf_counter")?.extract()
}

/// Runs with controllers written in Python, and raises an exception if any of them raised one.
fn steered(
    py: Python<'_>,
    scenario: &sweetspot_scenario::Scenario,
    controllers: Vec<Option<Py<PyAny>>>,
    recorder: &mut (impl Recorder + Send),
) -> PyResult<sweetspot_scenario::Outcome> {
    let failure = Failure::default();
    let mut names = Vec::new();
    let mut makers: Vec<Option<ControllerMaker>> = Vec::new();
    for object in controllers {
        let name = match &object {
            Some(object) => Some(object.bind(py).get_type().name()?.to_string()),
            None => None,
        };
        names.push(name);
        makers.push(object.map(|object| Bridge::maker(object, failure.clone())));
    }
    let mut outcome = py.detach(|| run_steered(scenario, recorder, makers));
    failure.raise()?;
    for (transfer, name) in outcome.transfers.iter_mut().zip(names) {
        if let Some(name) = name {
            transfer.sizing = format!("python:{name}");
        }
    }
    Ok(outcome)
}
