//! The simulator, the closed forms and the diagnosis of captures, for pages in a browser. A [`Question`] in
//! JSON gets an answer ([`answer`]), and a [`Diagnosis`] reads a file in pieces.
//!
//! Compiled to WebAssembly, the crate's module `exports` has the functions that JavaScript calls. Linked
//! natively, it gives the same answers byte for byte.
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
mod diagnosis;
mod error;
#[cfg(target_arch = "wasm32")]
mod exports;
mod question;
mod series;
mod simulated;
mod zstd;

pub use curve::ThroughputCurve;
pub use diagnosis::{Diagnosis, DiagnosisPage};
pub use error::{AnswerError, DiagnosisError};
pub use question::{EngineName, Question, answer};
pub use series::SampledRun;
pub use simulated::simulate as simulate_flows;

/// Ends a pass of `diagnosis`: the page or `{"error": "why not"}` in JSON; `None` if the file must be passed
/// again.
#[cfg(target_arch = "wasm32")]
fn diagnosed(diagnosis: &mut Diagnosis) -> Option<String> {
    let page = diagnosis.end().transpose()?;
    let answer = page
        .map_err(|error| error.to_string())
        .and_then(|page| serde_json::to_string(&page).map_err(|error| error.to_string()));
    Some(answer.unwrap_or_else(|error| serde_json::json!({ "error": error }).to_string()))
}
