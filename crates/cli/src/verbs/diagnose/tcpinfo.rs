//! Recorded kernel statistics of connections.

use std::path::Path;

use sweetspot_diagnose::recorded;
use sweetspot_diagnose::report::DiagnosisReport;
use sweetspot_program::print::Shown;

use super::input;

/// Reads the recording `path` and keeps the `max` flows that carried most.
pub fn read(path: &Path, max: usize) -> Result<DiagnosisReport, String> {
    let text = input::read_text(path)?;
    recorded::report(&text, max).map_err(|error| format!("{}: {error}", path.shown()))
}
