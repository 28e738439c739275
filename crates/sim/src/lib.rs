//! The packet-level simulator: deterministic, from a seed.

mod build;
mod changes;
mod engine;
mod event;
mod feed;
mod flow;
mod group;
mod histogram;
mod hop;
mod inputs;
mod ledger;
mod outcome;
mod packet;
mod random;
pub mod scheduler;
mod shelf;
mod sink_side;
mod source;
mod source_side;
mod steering;
mod target;
mod world;

pub use engine::{Simulator, run_steered, run_with};
pub use target::ControllerMaker;
