//! Recorded kernel statistics of connections.

use std::path::Path;

use sweetspot_diagnose::recorded;
use sweetspot_diagnose::report::{DiagnosisReport, rank};

use super::input;
use sweetspot_program::print::Shown;

/// Reads the recording `path` and keeps the `most` flows that carried most.
pub fn read(path: &Path, most: usize) -> Result<DiagnosisReport, String> {
    let name = path.shown();
    let text = input::read_text(path)?;
    let recorded = recorded::read(&text).map_err(|error| format!("{name}: {error}"))?;
    let mut flows: Vec<_> =
        recorded::flows(&recorded.recordings).into_iter().map(|flow| (flow.bytes, flow)).collect();
    rank(&mut flows);
    let left_out = flows.len().saturating_sub(most) as u64;
    flows.truncate(most);
    let flows = flows.into_iter().map(|(_, flow)| flow).collect();
    Ok(DiagnosisReport {
        flows,
        flows_left_out: left_out,
        packets: None,
        tcp_segments: None,
        remarks: remarks(&recorded.not_understood),
    })
}

/// Which lines were left out, if any.
fn remarks(not_understood: &[String]) -> Vec<String> {
    let Some(first) = not_understood.first() else { return Vec::new() };
    let count = not_understood.len();
    let lines = if count == 1 { "line" } else { "lines" };
    vec![format!("{count} {lines} about connections not understood; the first: {first}")]
}
