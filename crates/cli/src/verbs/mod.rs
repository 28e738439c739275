//! One file per verb: its arguments and its steps.

pub mod advise;
mod certified_lab;
pub mod completions;
pub mod copy;
pub mod demo;
pub mod diagnose;
pub mod emulate;
pub mod engine;
pub mod gauntlet;
pub mod invite;
pub mod key;
pub mod lab;
pub mod man;
pub mod measure;
pub mod mft;
pub mod receive;
pub mod report;
pub mod reproduce;
pub mod run;
mod scenario_file;
pub mod send;
pub mod serve;
pub mod sweep;
pub mod top;
pub mod transfer;
pub mod tune;
pub mod ui;
pub mod validate;

use std::process::ExitCode;

/// How a verb ends: an exit code, or one line that names the thing, the reason and the next step.
pub type Ending = Result<ExitCode, Box<dyn std::error::Error>>;
