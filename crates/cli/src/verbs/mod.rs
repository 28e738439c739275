//! One file per verb: its arguments as typed, and its story.

pub mod demo;
pub mod emulate;
pub mod mft;
pub mod reproduce;
pub mod run;
mod scenario_file;
pub mod send;
pub mod serve;
pub mod sweep;

use std::process::ExitCode;

/// How a verb ends: an exit code, or one line that names the thing, the reason and the next step.
pub type Ending = Result<ExitCode, Box<dyn std::error::Error>>;
