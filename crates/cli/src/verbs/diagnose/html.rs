//! The page on a capture, which is read again for the graphs of its largest connections.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use sweetspot_diagnose::Flow;
use sweetspot_diagnose::page::{Drawing, page};
use sweetspot_diagnose::report::{DiagnosisReport, segments};
use sweetspot_trace::packet::Dissector;

use super::input;
use sweetspot_program::print::Shown;

/// Writes the page on `report`, which is of `capture`, to `out`.
pub fn write(capture: &Path, report: &DiagnosisReport, out: &Path) -> Result<(), String> {
    let drawings = draw(capture, &report.flows)?;
    let flows: Vec<_> = report.flows.iter().cloned().zip(drawings).collect();
    let name = capture.file_name().unwrap_or(capture.as_os_str()).to_string_lossy();
    fs::write(out, page(&name, &flows))
        .map_err(|error| format!("cannot write {}: {error}", out.shown()))
}

/// Both ends, the smaller first.
type Key = [SocketAddr; 2];

fn key(a: SocketAddr, b: SocketAddr) -> Key {
    if a <= b { [a, b] } else { [b, a] }
}

/// The drawings of `flows`, in their order.
fn draw(capture: &Path, flows: &[Flow]) -> Result<Vec<Option<Drawing>>, String> {
    let mut drawings: Vec<Option<Drawing>> =
        flows.iter().map(|flow| Some(Drawing::new(flow.source, flow.seen?))).collect();
    let mut wanted: HashMap<Key, Vec<usize>> = HashMap::new();
    for (n, flow) in flows.iter().enumerate() {
        wanted.entry(key(flow.source, flow.destination)).or_default().push(n);
    }
    let mut file = input::open(capture)?;
    // The first pass reported its faults.
    let _ = segments(&mut *file, &mut Dissector::default(), &mut |segment| {
        for n in wanted.get(&key(segment.source, segment.destination)).into_iter().flatten() {
            drawings[*n].iter_mut().for_each(|drawing| drawing.take(segment));
        }
    });
    drawings.iter_mut().flatten().for_each(Drawing::end);
    Ok(drawings)
}
