use serde::{Deserialize, Serialize};
use sweetspot_emulator as emulator;

/// Summary of the emulator's certificate of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Whether the emulation matched the path's specification.
    pub trust: bool,
    /// Why the run cannot be trusted; empty if it can.
    pub reasons: Vec<String>,
    /// 99th percentile of the release lateness, in the worse direction, in seconds.
    pub p99_lateness_s: f64,
    /// Maximum lateness of a release, in seconds.
    pub max_lateness_s: f64,
    /// The whole certificate as text.
    pub text: String,
    /// The whole certificate as JSON.
    pub emulator: serde_json::Value,
}

impl From<&emulator::Certificate> for Certificate {
    fn from(of: &emulator::Certificate) -> Certificate {
        let latest = of.up.lateness.max.max(of.down.lateness.max);
        Certificate {
            trust: of.verdict.trust,
            reasons: of.verdict.reasons.clone(),
            p99_lateness_s: of.p99_lateness().as_secs_f64(),
            max_lateness_s: latest.map_or(0.0, |latest| latest.as_secs_f64()),
            text: of.to_string(),
            // A structure of numbers and strings always serialises.
            emulator: serde_json::to_value(of).unwrap_or_default(),
        }
    }
}
