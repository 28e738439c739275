//! One file per verb: its arguments and its steps.

pub mod advise;
pub mod copy;
pub mod demo;
pub mod diagnose;
pub mod emulate;
pub mod generate;
pub mod measure;
pub mod receive;
pub mod report;
pub mod run;
pub mod send;
pub mod serve;
pub mod sweep;
pub mod top;
pub mod transfer;
pub mod tune;
pub mod ui;

pub use sweetspot_program::Ending;
