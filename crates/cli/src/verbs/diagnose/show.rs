use sweetspot_diagnose::Flow;
use sweetspot_diagnose::path::Simulation;
use sweetspot_diagnose::report::DiagnosisReport;

use super::directory::Entry;
use sweetspot_program::print::Shown;

/// Prints a diagnosis as text.
pub fn report(report: &DiagnosisReport) {
    if let (Some(packets), Some(segments)) = (report.packets, report.tcp_segments) {
        out!("{packets} packets, {segments} of them TCP");
    }
    for remark in &report.remarks {
        out!("note: {remark}");
    }
    let mut begun = report.packets.is_some() || !report.remarks.is_empty();
    for each in &report.flows {
        if std::mem::replace(&mut begun, true) {
            out!("");
        }
        flow(each);
    }
    if report.flows_left_out > 0 {
        out!("");
        out!("{} smaller flows are left out (--flows N tells of more)", report.flows_left_out);
    }
}

/// Prints the report on one file of a directory.
pub fn entry(entry: &Entry) {
    out!("== {}", entry.file.shown());
    if let Some(error) = &entry.error {
        out!("note: {error}");
    }
    entry.report.iter().for_each(report);
    out!("");
}

fn flow(flow: &Flow) {
    out!("{} -> {}", flow.source, flow.destination);
    let verdict = &flow.verdict;
    out!("  {}", verdict.words);
    out!("  {}", flow.fix);
    let round_trips = match (flow.rtt_min_s, flow.rtt_median_s) {
        (Some(min), Some(median)) => {
            format!("round trip {:.1} ms, median {:.1} ms; ", min * 1e3, median * 1e3)
        }
        _ => String::new(),
    };
    out!(
        "  {:.2} Mbit/s; {round_trips}{} segments retransmitted",
        flow.goodput_bps / 1e6,
        flow.retransmitted_segments
    );
    if let Some(joined) = &flow.joined {
        out!("  {}", joined.words());
    }
    if let Some(Simulation::Done(simulated)) = &flow.simulated {
        out!("  {}", simulated.words());
    }
    for remark in &flow.remarks {
        out!("  note: {remark}");
    }
    out!("  time: {}", flow.limits.words());
}
