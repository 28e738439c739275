use std::net::SocketAddr;

use sweetspot_diagnose::path::Simulation;
use sweetspot_diagnose::report::DiagnosisReport;
use sweetspot_diagnose::{Class, Flow, counted, percent};
use sweetspot_units::Bytes;

use super::directory::Entry;
use sweetspot_program::print::{self, Shown, spaced};

/// Default number of flows shown with their details. If there are more, a table precedes them.
const DETAILED: usize = 3;
/// Width for the address and port of an end in the table.
const END_WIDTH: usize = 20;

/// Prints a diagnosis as text, with the details of `detailed` flows.
pub fn report(report: &DiagnosisReport, detailed: Option<usize>) {
    let mut begun = !report.remarks.is_empty();
    if let (Some(packets), Some(segments), false) =
        (report.packets, report.tcp_segments, print::is_quiet())
    {
        let packets = counted(packets, "packet", "packets");
        spaced(&format!("{packets}, {segments} of them TCP"));
        begun = true;
    }
    for remark in &report.remarks {
        spaced(&format!("note: {remark}"));
    }
    if report.flows.len() > DETAILED {
        if std::mem::replace(&mut begun, true) {
            out!("");
        }
        table(&report.flows).iter().for_each(|line| out!("{line}"));
    }
    let shared = shared_remarks(&report.flows);
    for remark in &shared {
        spaced(&format!("note on all flows: {remark}"));
    }
    for each in report.flows.iter().take(detailed.unwrap_or(DETAILED)) {
        if std::mem::replace(&mut begun, true) {
            out!("");
        }
        flow(each, &shared);
    }
    let all = report.flows.len() as u64 + report.flows_left_out;
    let is_partly_detailed = detailed.is_none() && all > DETAILED as u64;
    if is_partly_detailed && report.flows_left_out == 0 && !print::is_quiet() {
        out!("");
        spaced(&format!("details of the first {DETAILED} flows; --flows {all} shows those of all"));
    }
    if report.flows_left_out > 0 {
        if begun {
            out!("");
        }
        let [one, more] = match report.flows.is_empty() {
            true => ["flow is", "flows are"],
            false => ["smaller flow is", "smaller flows are"],
        };
        let flows = counted(report.flows_left_out, one, more);
        spaced(&format!("{flows} left out; --flows {all} shows all, each with its details"));
    }
}

/// The flows as a table of 80 columns, in their order: the largest first.
fn table(flows: &[Flow]) -> Vec<String> {
    let line = |[source, destination, bytes, rate]: [&str; 4], limit: &str| {
        format!("{source:<END_WIDTH$} {destination:<END_WIDTH$} {bytes:>8} {rate:>7}  {limit}")
    };
    let heading = line(["source", "destination", "bytes", "Mbit/s"], "limited by");
    let rows = flows.iter().map(|flow| {
        let [source, destination] = [flow.source, flow.destination].map(|of| end(of, END_WIDTH));
        let [bytes, rate] =
            [Bytes::new(flow.bytes).to_string(), format!("{:.2}", flow.goodput_bps / 1e6)];
        let (share, cause) = (percent(flow.verdict.cause_share), flow.verdict.cause);
        let limit = match cause {
            Class::Unknown if flow.brief() == cause.brief() => cause.to_string(),
            _ => format!("{share:.0} % {}", flow.brief()),
        };
        line([&source, &destination, &bytes, &rate], &limit)
    });
    std::iter::once(heading).chain(rows).collect()
}

/// An address and its port in `width` characters. A long address is cut, the port is kept.
pub fn end(end: SocketAddr, width: usize) -> String {
    let text = end.to_string();
    match text.chars().count() {
        n if n <= width => text,
        n => format!("…{}", text.chars().skip(n - width + 1).collect::<String>()),
    }
}

/// The remarks that each of several flows has.
fn shared_remarks(flows: &[Flow]) -> Vec<&str> {
    let Some((first, others @ [_, ..])) = flows.split_first() else { return Vec::new() };
    let remarks = first.remarks.iter();
    let shared = remarks.filter(|remark| others.iter().all(|flow| flow.remarks.contains(remark)));
    shared.map(String::as_str).collect()
}

/// Prints the report on one file of a directory.
pub fn entry(entry: &Entry, detailed: Option<usize>) {
    out!("== {}", entry.file.shown());
    if let Some(error) = &entry.error {
        spaced(&format!("note: {error}"));
    }
    entry.report.iter().for_each(|of| report(of, detailed));
    out!("");
}

/// A time in milliseconds, or in microseconds if it is below 0.1 ms.
fn in_time(seconds: f64) -> String {
    if seconds < 1e-4 {
        format!("{:.0} us", seconds * 1e6)
    } else {
        format!("{:.1} ms", seconds * 1e3)
    }
}

fn flow(flow: &Flow, shared: &[&str]) {
    out!("{} -> {}", flow.source, flow.destination);
    let print = |words: &str| spaced(&format!("  {words}"));
    print(&flow.verdict.words);
    print(&flow.fix);
    let (kind, usual) = match flow.rtt_smoothed_s {
        Some(smoothed) => ("smoothed", Some(smoothed)),
        None => ("median", flow.rtt_median_s),
    };
    let pauses = match flow.may_time_pauses() {
        true => " (may include the sender's pauses)",
        false => "",
    };
    let round_trips = match (flow.rtt_min_s, usual) {
        (Some(min), Some(median)) => {
            format!("; min RTT {}, {kind} {}{pauses}", in_time(min), in_time(median))
        }
        (Some(min), None) => format!("; min RTT {}", in_time(min)),
        (None, Some(median)) => format!("; {kind} RTT {}{pauses}", in_time(median)),
        (None, None) => String::new(),
    };
    let retransmitted = match flow.counts_retransmissions {
        true => {
            let segments = counted(flow.retransmitted_segments, "segment", "segments");
            format!("; {segments} retransmitted")
        }
        false => String::new(),
    };
    print(&format!("{}{round_trips}{retransmitted}", flow.rate()));
    if let Some(joined) = &flow.joined {
        print(&joined.words());
    }
    if let Some(Simulation::Done(simulated)) = &flow.simulated {
        print(&simulated.words());
    }
    for remark in flow.remarks.iter().filter(|remark| !shared.contains(&remark.as_str())) {
        print(&format!("note: {remark}"));
    }
    let time = flow.time();
    if !time.is_empty() {
        print(&format!("time: {time}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loopback_rtt_is_not_rounded_to_zero() {
        let shown = [0.0402, 0.0001, 0.000_022].map(in_time);
        assert_eq!(shown, ["40.2 ms", "0.1 ms", "22 us"]);
    }
}
