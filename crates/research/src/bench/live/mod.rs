//! The benchmark of `tune`: other programs across an emulated path, with and without tuning.

mod document;
mod interactive;
mod peers;
mod plan;
mod run;
mod targets;
mod watch;

pub use document::document;
pub use peers::PORT;
pub use plan::{Client, RunPlan, Via, plans};
pub use run::{RunOutcome, TunerCommand, run_command, run_plan};
