//! The simulator and the closed forms for a program that has nothing but texts in common with them: a
//! page. What is asked and what is answered is JSON.
//!
//! The crate is compiled to WebAssembly, where its module `exports` has the functions that JavaScript calls;
//! linked natively it gives the same answers, to the byte.

mod curve;
#[cfg(target_arch = "wasm32")]
mod exports;
mod question;
mod series;

pub use curve::ThroughputCurve;
pub use question::{EngineName, Question, answer};
pub use series::SampledRun;
