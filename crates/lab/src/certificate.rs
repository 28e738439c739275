use serde::{Deserialize, Serialize};
use sweetspot_emulator as emulator;

/// The emulator's certificate of a run, summarised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Whether the emulation matched its path.
    pub trust: bool,
    /// Why not; empty if it can be trusted.
    pub reasons: Vec<String>,
    /// The lateness that 99 % of the releases did not exceed, in the worse direction, seconds.
    pub p99_lateness_s: f64,
    /// The latest release, seconds.
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
            // A structure of numbers and texts always serialises.
            emulator: serde_json::to_value(of).unwrap_or_default(),
        }
    }
}
