//! Two captures of the same connections, taken at two places.

use std::collections::HashMap;
use std::net::SocketAddr;

use sweetspot_diagnose::joined::Joining;
use sweetspot_diagnose::report::{DiagnosisReport, segments};
use sweetspot_diagnose::{Flow, counted};
use sweetspot_trace::packet::{Dissector, Segment};

use super::capture;
use super::input::Input;

/// Reads the captures `first` and `second`. For each flow in both, the verdict comes from the capture nearer to the
/// sender, which shows more.
pub fn read(first: &Input, second: &Input, max: usize) -> Result<DiagnosisReport, String> {
    let mut report = capture::read(first, max)?;
    let other = capture::read(second, max)?;
    let mut joinings: HashMap<EndPair, Joining> =
        report.flows.iter().map(|flow| (key(flow), Joining::default())).collect();
    pass(first, &mut joinings, Joining::first)?;
    pass(second, &mut joinings, Joining::second)?;
    let mut only_first = 0;
    for flow in &mut report.flows {
        let Some(joining) = joinings.get(&key(flow)) else { continue };
        let twin = other.flows.iter().find(|other| key(other) == key(flow));
        match joining.joined() {
            Ok(joined) => {
                if let Some(nearer) = twin.filter(|_| !joined.first_is_nearer) {
                    *flow = nearer.clone();
                }
                flow.joined = Some(joined);
            }
            Err(_) if twin.is_none() => only_first += 1,
            Err(why) => flow.remarks.push(format!("the captures cannot be joined: {why}")),
        }
    }
    let is_in_first = |flow: &&Flow| report.flows.iter().any(|first| key(first) == key(flow));
    let only_second = other.flows.iter().filter(|flow| !is_in_first(flow)).count() as u64;
    if only_second > 0 {
        report.remarks.push(format!(
            "{} only in {}, and not shown; diagnose it alone",
            counted(only_second, "flow is", "flows are"),
            second.name()
        ));
    }
    if only_first == report.flows.len() as u64 {
        report.remarks.push(format!(
            "no connection is in both {} and {}; does a device on the way change addresses?",
            first.name(),
            second.name()
        ));
    } else if only_first > 0 {
        report.remarks.push(format!(
            "{} only in {}, and not joined",
            counted(only_first, "flow is", "flows are"),
            first.name()
        ));
    }
    sweetspot_wasm::simulate_flows(&mut report.flows);
    Ok(report)
}

/// Sender and receiver.
type EndPair = [SocketAddr; 2];

fn key(flow: &Flow) -> EndPair {
    [flow.source, flow.destination]
}

/// Passes the packets of `capture` to the joinings of their connections.
fn pass(
    capture: &Input,
    joinings: &mut HashMap<EndPair, Joining>,
    take: impl Fn(&mut Joining, &Segment, bool),
) -> Result<(), String> {
    let mut file = capture.open()?;
    // Errors were reported in the first pass.
    let _ = segments(&mut *file, &mut Dissector::default(), &mut |segment| {
        let ends = [segment.source, segment.destination];
        for (key, forward) in [(ends, true), ([ends[1], ends[0]], false)] {
            if let Some(joining) = joinings.get_mut(&key) {
                take(joining, segment, forward);
            }
        }
    });
    Ok(())
}
