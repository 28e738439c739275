use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sweetspot_scenario::{Engine, NoRecorder};
use sweetspot_sim::{ControllerMaker, Simulator, run_steered};
use sweetspot_theory::engine::Theory;

use crate::controller::{Bridge, Failure};
use crate::outcome::Outcome;
use crate::scenario::{EngineError, Scenario};

/// Plays a scenario and returns its outcome. The GIL is released meanwhile.
///
/// ``controllers`` gives transfers, in the order of the file, a controller written in Python;
/// ``None`` in it leaves the scenario's own.
#[pyfunction]
#[pyo3(signature = (scenario, engine = "sim", seed = None, controllers = Vec::new()))]
pub fn run(
    py: Python<'_>,
    scenario: &Bound<'_, Scenario>,
    engine: &str,
    seed: Option<u64>,
    controllers: Vec<Option<Py<PyAny>>>,
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
        "sim" if given > 0 => steered(py, &scenario, controllers)?,
        "sim" => py
            .detach(|| Simulator.run(&scenario, &mut NoRecorder))
            .map_err(|error| EngineError::new_err(error.to_string()))?,
        "theory" if given > 0 => {
            let reason = "a controller decides by what happens; only engine \"sim\" plays one";
            return Err(PyValueError::new_err(reason));
        }
        "theory" => Theory
            .run(&scenario, &mut NoRecorder)
            .map_err(|error| EngineError::new_err(error.to_string()))?,
        other => {
            let known = "known are sim, theory";
            return Err(PyValueError::new_err(format!("unknown engine \"{other}\"; {known}")));
        }
    };
    outcome.wall_s = seconds(py)? - started;
    Ok(Outcome(outcome))
}

/// Python's own clock.
fn seconds(py: Python<'_>) -> PyResult<f64> {
    py.import("time")?.call_method0("perf_counter")?.extract()
}

/// Runs with controllers written in Python; what one of them raises is raised again.
fn steered(
    py: Python<'_>,
    scenario: &sweetspot_scenario::Scenario,
    controllers: Vec<Option<Py<PyAny>>>,
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
    let mut outcome = py.detach(|| run_steered(scenario, &mut NoRecorder, makers));
    failure.raise()?;
    for (transfer, name) in outcome.transfers.iter_mut().zip(names) {
        if let Some(name) = name {
            transfer.sizing = format!("python:{name}");
        }
    }
    Ok(outcome)
}
