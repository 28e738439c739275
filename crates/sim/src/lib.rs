//! The packet-level simulator: deterministic, from a seed.

mod build;
mod changes;
mod control_loop;
mod engine;
mod event;
mod flow;
mod group;
mod histogram;
mod hop;
mod inputs;
mod outcome;
mod packet;
mod random;
mod recorder;
pub mod scheduler;
mod sink_side;
mod slab;
mod source;
mod source_side;
mod target;
mod uplink;
mod world;

pub use engine::{Simulator, run_steered, run_with};
pub use target::ControllerMaker;
