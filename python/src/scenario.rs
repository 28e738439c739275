use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use sweetspot_scenario as scenario;

create_exception!(
    sweetspot,
    ScenarioError,
    PyValueError,
    "A text is not a valid scenario; the message names the key, its line and the allowed values."
);
create_exception!(
    sweetspot,
    EngineError,
    PyRuntimeError,
    "An engine cannot run a scenario: says what it cannot do."
);

/// A valid scenario. It is immutable and pickles as its text, so it can be sent to any worker.
#[pyclass(frozen, module = "sweetspot._core", subclass)]
#[derive(Debug)]
pub struct Scenario {
    text: String,
    overrides: Vec<String>,
    pub(crate) inner: scenario::Scenario,
}

impl Scenario {
    fn read(text: String, overrides: Vec<String>) -> PyResult<Scenario> {
        let inner = scenario::Scenario::parse_with(&text, &overrides)
            .map_err(|error| ScenarioError::new_err(error.to_string()))?;
        Ok(Scenario { text, overrides, inner })
    }
}

#[pymethods]
impl Scenario {
    #[new]
    #[pyo3(signature = (text, overrides = Vec::new()))]
    fn new(text: String, overrides: Vec<String>) -> PyResult<Scenario> {
        Scenario::read(text, overrides)
    }

    /// The TOML text that it was parsed from, without the overrides.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// Additional settings, as `key=value`.
    #[getter]
    fn overrides(&self) -> Vec<String> {
        self.overrides.clone()
    }

    /// A human-readable description.
    #[getter]
    fn title(&self) -> &str {
        &self.inner.title
    }

    /// The seed of all random numbers.
    #[getter]
    fn seed(&self) -> u64 {
        self.inner.seed
    }

    /// The number of measured transfers.
    #[getter]
    fn transfers(&self) -> usize {
        self.inner.transfers.len()
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> (Bound<'py, pyo3::types::PyType>, (String, Vec<String>)) {
        let this = slf.get();
        (slf.get_type(), (this.text.clone(), this.overrides.clone()))
    }

    fn __eq__(&self, other: &Scenario) -> bool {
        self.inner == other.inner
    }

    fn __repr__(&self) -> String {
        let hops = &self.inner.path;
        format!(
            "<Scenario \"{}\": {}, {}, {} transfers, {} kinds of cross traffic, seed {}>",
            self.inner.title,
            hops.narrow().rate,
            hops.rtt,
            self.inner.transfers.len(),
            self.inner.cross.len(),
            self.inner.seed,
        )
    }
}
