//! One file per verb: its arguments and its steps.

mod certified_lab;
mod eta;
pub mod gauntlet;
pub mod lab;
pub mod reproduce;
pub mod validate;

pub use sweetspot_program::Ending;
