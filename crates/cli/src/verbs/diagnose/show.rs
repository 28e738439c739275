use sweetspot_diagnose::path::Simulation;
use sweetspot_diagnose::report::DiagnosisReport;
use sweetspot_diagnose::{Flow, counted};

use super::directory::Entry;
use sweetspot_program::print::{self, Shown, spaced};

/// Prints a diagnosis as text.
pub fn report(report: &DiagnosisReport) {
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
    for each in &report.flows {
        if std::mem::replace(&mut begun, true) {
            out!("");
        }
        flow(each);
    }
    if report.flows_left_out > 0 {
        out!("");
        let [one, more] = match report.flows.is_empty() {
            true => ["flow is", "flows are"],
            false => ["smaller flow is", "smaller flows are"],
        };
        let flows = counted(report.flows_left_out, one, more);
        spaced(&format!("{flows} left out (--flows N shows more)"));
    }
}

/// Prints the report on one file of a directory.
pub fn entry(entry: &Entry) {
    out!("== {}", entry.file.shown());
    if let Some(error) = &entry.error {
        spaced(&format!("note: {error}"));
    }
    entry.report.iter().for_each(report);
    out!("");
}

/// Seconds in milliseconds, and below a tenth of one in microseconds.
fn in_time(seconds: f64) -> String {
    if seconds < 1e-4 {
        format!("{:.0} us", seconds * 1e6)
    } else {
        format!("{:.1} ms", seconds * 1e3)
    }
}

fn flow(flow: &Flow) {
    out!("{} -> {}", flow.source, flow.destination);
    let print = |words: &str| spaced(&format!("  {words}"));
    print(&flow.verdict.words);
    print(&flow.fix);
    let round_trips = match (flow.rtt_min_s, flow.rtt_median_s) {
        (Some(min), Some(median)) => {
            format!("; min RTT {}, median {}", in_time(min), in_time(median))
        }
        (Some(min), None) => format!("; min RTT {}", in_time(min)),
        (None, Some(median)) => format!("; median RTT {}", in_time(median)),
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
    for remark in &flow.remarks {
        print(&format!("note: {remark}"));
    }
    print(&format!("time: {}", flow.time()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_within_a_host_is_not_rounded_to_nothing() {
        let shown = [0.0402, 0.0001, 0.000_022].map(in_time);
        assert_eq!(shown, ["40.2 ms", "0.1 ms", "22 us"]);
    }
}
