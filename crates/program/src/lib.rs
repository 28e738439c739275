//! Parts that Sweetspot's command-line programs share: output that escapes a peer's text, progress that a signal may
//! interrupt, atomic replacement of files, the journal of finished runs, the choice of an engine.

use std::process::ExitCode;

pub use failed_command::failed_command;

pub mod build;
pub mod bundled;
pub mod engine;
mod failed_command;
mod fold;
pub mod fold_help;
mod fold_table;
#[cfg(not(target_os = "linux"))]
mod lab_elsewhere;
pub mod path_option;
#[macro_use]
pub mod print;
pub mod progress;
pub mod result_journal;
pub mod scenario_file;
pub mod text_file;
pub mod usage_error;
pub mod values;
pub mod whole_file;

/// The result of a step of a verb: its error is one line that names the thing, the reason and the next step.
pub type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// How a verb ends.
pub type Ending = Fallible<ExitCode>;
