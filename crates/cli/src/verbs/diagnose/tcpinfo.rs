//! Recorded kernel statistics of connections.

use std::fmt::Display;
use std::path::Path;

use sweetspot_diagnose::recorded;
use sweetspot_diagnose::report::DiagnosisReport;
use sweetspot_program::print::Shown;

use super::input;

/// Reads the recording `path` and keeps the `max` flows that carried most.
pub fn read(path: &Path, max: usize) -> Result<DiagnosisReport, String> {
    of(path, max, path.shown())
}

/// As [`read`], of standard input that was copied to `path`.
pub fn read_spooled(path: &Path, max: usize) -> Result<DiagnosisReport, String> {
    of(path, max, "standard input")
}

fn of(path: &Path, max: usize, name: impl Display) -> Result<DiagnosisReport, String> {
    let text = input::read_text(path)?;
    recorded::report(&text, max).map_err(|error| format!("{name}: {error}"))
}
