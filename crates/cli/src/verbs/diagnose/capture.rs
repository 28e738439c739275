//! Diagnoses the flows of a capture file, compressed or not.

use std::path::Path;

use sweetspot_diagnose::report::{DiagnosisReport, PassFailure};

use super::input;
use sweetspot_program::print::Shown;

/// Reads the capture `path` and keeps the `max` flows with the most payload.
pub fn read(path: &Path, max: usize) -> Result<DiagnosisReport, String> {
    let name = path.shown();
    let mut file = input::open(path)?;
    sweetspot_diagnose::report::read(&mut *file, max).map_err(|failure| match failure {
        PassFailure::Read(error) => format!("cannot read {name}: {error}"),
        PassFailure::Capture(error) => format!("{name}: {error}"),
    })
}
