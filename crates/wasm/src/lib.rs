//! The simulator and the closed forms behind a JSON interface, for the local page: a [`Question`]
//! in, an answer out ([`answer`]).
//!
//! The crate is compiled to WebAssembly, where its module `exports` has the functions that
//! JavaScript calls. Linked natively it gives the same answers, to the byte.
//!
//! ```
//! let scenario = r#"
//!     title = "One transfer alone"
//!     warmup = "5s"
//!     duration = "10s"
//!     [path]
//!     rate = "50Mbit/s"
//!     rtt = "100ms"
//!     buffer = "313pkt"
//!     packet = "1000B"
//!     [[transfer]]
//! "#;
//! let question = serde_json::json!({
//!     "ask": "curve", "scenario": scenario, "windows_bytes": [100_000, 700_000],
//! });
//! let answer = sweetspot_wasm::answer(&question.to_string());
//! assert!(answer.contains("goodput_bps"), "{answer}");
//! ```

mod curve;
#[cfg(target_arch = "wasm32")]
mod exports;
mod question;
mod series;

pub use curve::ThroughputCurve;
pub use question::{EngineName, Question, answer};
pub use series::SampledRun;
