//! Experiments with many runs: sweeps and their journal, the search for the Maximum Feasible Throughput, and advice
//! checked in the simulator.
//!
//! Every experiment is a function from scenarios to numbers. The result does not depend on the number of
//! [`Workers`].
//!
//! ```
//! use sweetspot_scenario::Scenario;
//! use sweetspot_experiment::{SearchBounds, Workers, find_mft};
//! use sweetspot_theory::engine::Theory;
//!
//! let scenario = Scenario::parse(
//!     r#"
//!     title = "One transfer alone"
//!     warmup = "5s"
//!     duration = "10s"
//!     [path]
//!     rate = "50Mbit/s"
//!     rtt = "100ms"
//!     buffer = "625pkt"
//!     packet = "1000B"
//!     [[transfer]]
//!     congestion = "newreno"
//!     "#,
//! )?;
//! let bounds = SearchBounds { min: 100, max: 1200, tolerance: 0.01 };
//! let mft = find_mft(&Theory, &scenario, bounds, 1, Workers::ONE)?;
//! // With windows from C x T_m = 625 packets the path is full: the MFT is C.
//! assert_eq!(mft.rate_bps, 50e6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cached_engine;
mod journal;
mod key_numbers;
mod over;
pub mod plot;
pub mod router;
pub mod run;
pub mod search;
mod sweep;
pub mod window;
mod workers;

pub use cached_engine::{CachedEngine, NoStore, ResultStore, RunKey};
pub use journal::{Journal, JournalError};
pub use key_numbers::{KeyNumbers, KeyUnit};
pub use over::{Over, SweepError};
pub use run::{StudyError, run_all};
pub use search::{Mft, SearchBounds, WindowTrial, find_mft, find_mfts, narrow_lower_edge};
pub use sweep::{Advantage, Fastest, Metric, Spread, Sweep, SweepPoint, SweepVariant};
pub use workers::Workers;
