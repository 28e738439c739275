//! Flows limited by a known cause, run in the lab, and their classification.

mod cause;
mod classified;
mod document;
mod field;
mod observe;
mod offload;
mod plan;
mod run;
mod talk;
mod watch;

pub use cause::FlowPlan;
pub use classified::{ClassifiedFlow, classify};
pub use document::markdown;
pub use plan::plans;
pub use run::run_plan;
