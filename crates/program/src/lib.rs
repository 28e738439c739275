//! Code shared by Sweetspot's command-line programs: output that escapes a peer's text, progress that a signal may
//! interrupt, atomic replacement of files, the journal of finished runs, and the choice of an engine.

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

/// The result of a verb's step. Its error is one line: the thing that failed, the reason and the next step.
pub type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// The result of a verb.
pub type Ending = Fallible<ExitCode>;
