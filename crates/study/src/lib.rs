//! Studies made of many runs: sweeps, the search for the Maximum Feasible Throughput, agreement
//! with ns-2, the papers' figures.
//!
//! Every study is a function from scenarios to numbers. How many [`Workers`] share the runs is
//! the caller's choice and never shows in the result.

mod cached_engine;
pub mod csv;
pub mod gauntlet;
mod journal;
pub mod markdown;
pub mod ns2;
pub mod papers;
mod play;
pub mod plot;
pub mod router;
pub mod search;
pub mod statistics;
mod sweep;
pub mod validate;
pub mod window;
mod workers;

pub use cached_engine::{CachedEngine, NoStore, ResultStore, RunKey};
pub use journal::{Journal, JournalError};
pub use play::{StudyError, play_all};
pub use search::{Mft, SearchBounds, find_mft, find_mfts};
pub use sweep::{Metric, Over, Spread, Sweep, SweepError, SweepPoint, SweepVariant};
pub use workers::Workers;
