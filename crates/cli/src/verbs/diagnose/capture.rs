//! Diagnoses the flows of a capture file, compressed or not.

use sweetspot_diagnose::report::{DiagnosisReport, PassFailure};

use super::input::{self, Input};

/// Reads the capture and keeps the `max` flows with the most payload.
pub fn read(capture: &Input, max: usize) -> Result<DiagnosisReport, String> {
    let name = capture.name();
    let mut file = capture.open()?;
    sweetspot_diagnose::report::read(&mut *file, max).map_err(|failure| match failure {
        PassFailure::Read(error) => format!("cannot read {name}: {}", input::words(&error)),
        PassFailure::Capture(error) => format!("{name}: {error}"),
    })
}
