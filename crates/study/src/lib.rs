//! Studies made of many runs: sweeps, the search for the Maximum Feasible Throughput, agreement
//! with ns-2, the papers' figures.
//!
//! Every study is a function from scenarios to numbers. How many [`Workers`] share the runs is
//! the caller's choice and never shows in the result.

pub mod csv;
pub mod markdown;
pub mod ns2;
pub mod papers;
mod play;
pub mod search;
mod sweep;
pub mod validate;
mod workers;

pub use play::{StudyError, play_all};
pub use search::{Bounds, Mft, find_mft};
pub use sweep::{Sweep, SweepPoint};
pub use workers::Workers;
