//! The benchmark of `measure`: random paths on the emulator, and the errors of their measurement.

mod cross;
mod document;
mod plan;
mod run;

pub use document::document;
pub use plan::plans;
pub use run::{PathResult, run_plan};
