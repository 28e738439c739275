//! The simulator and the closed forms behind a JSON interface, for the local page: a [`Question`]
//! in, an answer out ([`answer`]).
//!
//! The crate is compiled to WebAssembly, where its module `exports` has the functions that
//! JavaScript calls;
//! linked natively it gives the same answers, to the byte.

mod curve;
#[cfg(target_arch = "wasm32")]
mod exports;
mod question;
mod series;

pub use curve::ThroughputCurve;
pub use question::{EngineName, Question, answer};
pub use series::SampledRun;
