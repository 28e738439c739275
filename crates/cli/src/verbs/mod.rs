//! The verbs, each in its own file with its arguments and its steps.

pub mod advise;
#[cfg(target_os = "linux")]
pub mod copy;
#[cfg(target_os = "linux")]
pub mod demo;
pub mod diagnose;
#[cfg(target_os = "linux")]
pub mod emulate;
pub mod generate;
#[cfg(target_os = "linux")]
pub mod measure;
#[cfg(all(test, target_os = "linux"))]
mod members;
#[cfg(target_os = "linux")]
pub mod receive;
pub mod report;
pub mod run;
#[cfg(target_os = "linux")]
pub mod send;
#[cfg(target_os = "linux")]
pub mod serve;
pub mod sweep;
#[cfg(target_os = "linux")]
pub mod top;
#[cfg(target_os = "linux")]
pub mod transfer;
#[cfg(target_os = "linux")]
pub mod tune;
pub mod ui;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{advise_host, copy, demo, emulate, measure, receive, send, serve, top, tune};

pub use sweetspot_program::{Ending, Fallible};
