//! The packet-level simulator: deterministic, from a seed.

mod access;
mod build;
mod engine;
mod event;
mod flow;
mod group;
mod histogram;
mod hop;
mod meter;
mod packet;
mod random;
pub mod scheduler;
mod shelf;
mod source;
mod target;
mod world;

pub use engine::{Simulator, run_with};
