//! Recorded kernel statistics of connections.

use sweetspot_diagnose::recorded;
use sweetspot_diagnose::report::DiagnosisReport;

use super::input::Input;

/// Reads the recording and keeps the `max` flows with the most payload.
pub fn read(recording: &Input, max: usize) -> Result<DiagnosisReport, String> {
    let text = recording.read_text()?;
    recorded::report(&text, max).map_err(|error| format!("{}: {error}", recording.name()))
}
