//! The native part of the Python package `sweetspot`: scenarios, the simulator, controllers written
//! in Python, and the closed forms on NumPy arrays.

mod controller;
mod engine;
mod gauntlet;
#[cfg(target_os = "linux")]
mod host;
mod outcome;
mod scenario;
mod sockets;
mod studies;
mod sweep;
mod theory;

use pyo3::prelude::*;

/// The native module; the package `sweetspot` re-exports it.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::controller::PyControllerConfig;
    #[pymodule_export]
    use crate::engine::{run, series};
    #[pymodule_export]
    use crate::gauntlet::Gauntlet;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::host::advise_host;
    #[pymodule_export]
    use crate::outcome::{
        BottleneckOutcome, ControllerEvent, CrossOutcome, Outcome, TransferOutcome,
    };
    #[pymodule_export]
    use crate::scenario::{EngineError, Scenario, ScenarioError};
    #[pymodule_export]
    use crate::sockets::{LiveSocket, SocketReport};
    #[pymodule_export]
    use crate::studies::{advise_router, advise_window, diagnose, half_interval, mft, report};
    #[pymodule_export]
    use crate::sweep::{Journal, sweep_numbers, sweep_values};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let forms = PyModule::new(module.py(), "theory")?;
        crate::theory::register(&forms)?;
        module.add_submodule(&forms)?;
        // Makes `from sweetspot._core.theory import ...` work.
        let modules = module.py().import("sys")?.getattr("modules")?;
        modules.set_item("sweetspot._core.theory", &forms)?;
        let colours: Vec<&str> = sweetspot_report::colours(false).collect();
        module.add("COLOURS", colours)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
