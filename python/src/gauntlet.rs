//! A population of random paths: its runs, for any executor, and the report on them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sweetspot_research::gauntlet::{GauntletPlan, GauntletReport, GauntletSettings, RunMeasured};
use sweetspot_scenario::Congestion;
use sweetspot_sizing::Sizing;

use crate::outcome::Outcome;

/// Every run of a gauntlet, in order.
#[pyclass(frozen, module = "sweetspot._core")]
#[derive(Debug)]
pub struct Gauntlet(GauntletPlan);

#[pymethods]
impl Gauntlet {
    /// Draws the paths with indices from ``first`` to before ``end``.
    #[new]
    fn new(
        population: &str,
        numbers: (u64, u64, u64, u64),
        duration: Option<&str>,
        congestions: Vec<String>,
        congestion_fixed: bool,
        sizings: Vec<String>,
    ) -> PyResult<Gauntlet> {
        let (seed, first, end, seeds) = numbers;
        let congestion = |name: &String| {
            Congestion::named(name)
                .ok_or_else(|| PyValueError::new_err(format!("no congestion control \"{name}\"")))
        };
        let plan = GauntletPlan::new(GauntletSettings {
            population: population.parse().map_err(bad)?,
            seed,
            paths: first..end,
            seeds,
            duration: duration.map(str::parse).transpose().map_err(bad)?,
            congestion_fixed,
            congestions: congestions.iter().map(congestion).collect::<PyResult<_>>()?,
            sizings: sizings
                .iter()
                .map(|sizing| sizing.parse::<Sizing>().map_err(bad))
                .collect::<PyResult<_>>()?,
        });
        plan.map(Gauntlet).map_err(bad)
    }

    /// The scenario of every run, as TOML.
    fn texts(&self) -> Vec<String> {
        self.0.runs().map(|run| run.text()).collect()
    }

    /// The report as JSON; ``outcomes`` has one outcome per run, in order.
    fn report(&self, outcomes: Vec<Bound<'_, Outcome>>) -> PyResult<String> {
        let report = self.report_of(&outcomes)?;
        serde_json::to_string(&report).map_err(bad)
    }
}

impl Gauntlet {
    fn report_of(&self, outcomes: &[Bound<'_, Outcome>]) -> PyResult<GauntletReport> {
        let runs: Vec<_> = self.0.runs().collect();
        if outcomes.len() != runs.len() {
            let (given, needed) = (outcomes.len(), runs.len());
            return Err(PyValueError::new_err(format!("{given} outcomes of {needed} runs")));
        }
        let measured: Vec<RunMeasured> = runs
            .iter()
            .zip(outcomes)
            .map(|(run, outcome)| RunMeasured::of(&run.scenario(), &outcome.get().0))
            .collect();
        Ok(GauntletReport::of(&self.0, &measured))
    }
}

fn bad(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
