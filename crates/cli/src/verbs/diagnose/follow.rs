//! Prints a table of the observed connections every second.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use ratatui::crossterm::terminal;
use serde::Serialize;
use sweetspot_diagnose::following::{Following, RecentFlow};
use sweetspot_diagnose::report::{NO_TCP, Reading};
use sweetspot_diagnose::{counted, percent};
use sweetspot_linux::clock;
use sweetspot_linux::diag::{Detail, DiagConnection};
use sweetspot_linux::namespace::NetworkNamespace;
use sweetspot_system::Interruption;
use sweetspot_trace::flow::SenderReport;
use sweetspot_units::{Duration, Rate, Time};
use sweetspot_watch::{MEASURING, NamespaceConnections};

use super::followed::{ALL_DEVICES, Followed, PATIENCE};
use super::{DiagnoseArguments, show};
use crate::verbs::Ending;
use sweetspot_program::print::{Shown, clear_screen, out_while_read};

/// Interval between two tables.
const INTERVAL: Duration = Duration::from_secs(1);
/// Width for the address and port of an end: a table has 80 columns, and any IPv4 address fits.
const END_WIDTH: usize = 21;

/// One table in JSON.
#[derive(Serialize)]
struct FollowDocument<'a> {
    at_s: f64,
    connections_total: usize,
    lost_packets: u64,
    connections: &'a [RecentFlow],
}

/// Moves this thread, which opens the devices, into the namespace `name`.
fn enter(name: &str) -> Result<(), String> {
    let entered = NetworkNamespace::named(name).and_then(|namespace| namespace.enter());
    entered.map_err(|error| {
        format!("cannot enter the network namespace {name}: {error}; ip netns list has their names")
    })
}

/// This host's own connections, with the facts that packets do not show.
fn own_connections() -> Vec<DiagConnection> {
    let detail = Detail { info: true, ..Detail::NONE };
    let connections = NamespaceConnections::own().and_then(|mut own| own.read(detail));
    connections.unwrap_or_default()
}

/// Gets the window scales of connections that are already open from the kernel, because the capture will not have their
/// handshakes. Without them, the diagnosis reports them as unknown.
fn know_scales(reading: &mut Reading) {
    for connection in own_connections() {
        if let Some(info) = connection.info {
            let scales = [info.rcv_wscale, info.snd_wscale];
            reading.know_scales([connection.local, connection.remote], scales);
        }
    }
}

/// The kernel's counters of the data that this host sends.
#[derive(Default)]
struct OwnSenders {
    /// Each connection's time limited by the send buffer, and its time with data in flight, when first seen.
    first: HashMap<[SocketAddr; 2], [Duration; 2]>,
}

impl OwnSenders {
    /// Reports on them to `reading`. A capture shows evenly spaced segments and pauses, but not why.
    fn report_to(&mut self, reading: &mut Reading) {
        for connection in own_connections() {
            let Some(info) = connection.info else { continue };
            let (ends, now) =
                ([connection.local, connection.remote], [info.sndbuf_limited, info.busy_time]);
            let first = *self.first.entry(ends).or_insert(now);
            let [stopped, busy] = [0, 1].map(|n| now[n].saturating_sub(first[n]));
            let report = SenderReport {
                pacing_limit: Some(info.max_pacing_rate).filter(|limit| *limit != Rate::MAX),
                is_stopped_by_buffer: stopped * 2 > busy,
            };
            reading.know_sender(ends, report);
        }
    }
}

/// Follows `what` until --for has passed or a signal arrives, and then reports on all of it, as on a capture.
pub fn run(what: &Path, arguments: &DiagnoseArguments) -> Ending {
    arguments.netns.as_deref().map_or(Ok(()), enter)?;
    let mut followed = Followed::open(what)?;
    let mut reading = Reading::new(arguments.max_flows());
    let (mut following, mut senders) = (Following::default(), OwnSenders::default());
    let is_device = matches!(followed, Followed::Device { .. });
    if is_device {
        know_scales(&mut reading);
        senders.report_to(&mut reading);
    }
    let mut interruption = Interruption::hold()?;
    let mut code;
    let started = clock::now();
    let end = arguments.watch_for.map(|time| started + time);
    let mut due = started + INTERVAL;
    let (mut last, mut is_first) = (Time::ZERO, true);
    loop {
        let now = clock::now();
        code = interruption.wait_until(now)?;
        if code.is_some() {
            break;
        }
        if now >= end.map_or(due, |end| end.min(due)) {
            if is_device {
                senders.report_to(&mut reading);
            }
            let flows = following.sample(reading.table(), last);
            let is_first = std::mem::replace(&mut is_first, false);
            if !print(&flows, (last, now.since(started), is_first), followed.lost(), arguments)? {
                return Ok(ExitCode::SUCCESS);
            }
            due = now + INTERVAL;
            if end.is_some_and(|end| now >= end) {
                break;
            }
        }
        let until = end.map_or(due, |end| end.min(due)).min(now + PATIENCE);
        followed.receive(until, &mut |record| {
            last = last.max(record.time);
            reading.take(record);
        })?;
    }
    let mut report = reading.report(None);
    if is_device && let Some(remark) = report.remarks.iter_mut().find(|remark| *remark == NO_TCP) {
        let time = clock::now().since(started).as_secs_f64();
        let any = what == Path::new(ALL_DEVICES);
        let device = if any { "any device".to_owned() } else { what.shown().to_string() };
        *remark = format!("no TCP packets passed {device} in {time:.1} s");
    }
    if arguments.json {
        out!("{}", serde_json::to_string(&report)?);
    } else {
        show::report(&report, arguments.flows);
    }
    Ok(code.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// Prints a table for the time up to `at`, which is `after` from the start. Returns false if the output's reader is
/// gone.
fn print(
    flows: &[RecentFlow],
    (at, after, is_first): (Time, Duration, bool),
    lost: u64,
    arguments: &DiagnoseArguments,
) -> Result<bool, Box<dyn std::error::Error>> {
    if arguments.json {
        let document = FollowDocument {
            at_s: at.as_secs_f64(),
            connections_total: flows.len(),
            lost_packets: lost,
            connections: &flows[..flows.len().min(arguments.max_flows())],
        };
        return Ok(out_while_read(format_args!("{}", serde_json::to_string(&document)?))?);
    }
    let screen = std::io::stdout().is_terminal();
    let height = terminal::size().ok().filter(|_| screen).map(|(_, height)| usize::from(height));
    let max = arguments.max_flows();
    let rows = height.map_or(max, |height| height.saturating_sub(3).min(max));
    let text = table(flows, rows, lost);
    if screen {
        clear_screen();
        return Ok(out_while_read(format_args!("{}\n{text}", heading()))?);
    }
    // Output that is not a terminal has one heading, and a time above each table.
    let head = if is_first { heading() + "\n" } else { String::new() };
    Ok(out_while_read(format_args!("{head}after {:.0} s:\n{text}", after.as_secs_f64()))?)
}

fn heading() -> String {
    format!(
        "{:<END_WIDTH$} {:<END_WIDTH$} {:>7} {:>6}  limited by",
        "source", "destination", "Mbit/s", "RTT ms"
    )
}

/// The table without its heading.
fn table(flows: &[RecentFlow], rows: usize, lost: u64) -> String {
    let mut lines: Vec<String> = flows.iter().take(rows).map(line).collect();
    if flows.is_empty() {
        lines.push("no TCP packets yet".to_owned());
    }
    if flows.len() > rows {
        let left = (flows.len() - rows) as u64;
        lines.push(format!("{} (--flows N)", counted(left, "more connection", "more connections")));
    }
    if lost > 0 {
        let packets =
            counted(lost, "packet arrived too fast and was", "packets arrived too fast and were");
        lines.push(format!("{packets} lost"));
    }
    lines.join("\n")
}

fn line(flow: &RecentFlow) -> String {
    // Within a host, a round trip takes microseconds.
    let digits = |rtt: f64| if rtt < 1e-4 { 3 } else { 1 };
    let rtt = flow.rtt_s.map_or("-".to_owned(), |rtt| format!("{:.*}", digits(rtt), rtt * 1e3));
    // A rate needs two samples, and a limit some more time.
    let rate = flow.goodput_bps.map_or("-".to_owned(), |rate| format!("{:.2}", rate / 1e6));
    let limit = match percent(flow.share_of_time) {
        _ if flow.measuring => MEASURING.to_owned(),
        0.0 => "-".to_owned(),
        share => format!("{share:.0} % {}", flow.brief),
    };
    let [source, destination] =
        [flow.source, flow.destination].map(|end| show::end(end, END_WIDTH));
    format!("{source:<END_WIDTH$} {destination:<END_WIDTH$} {rate:>7} {rtt:>6}  {limit}")
}

#[cfg(test)]
mod tests {
    use sweetspot_diagnose::Class;

    use super::*;

    #[test]
    fn missing_rates_and_limits_are_shown_as_dashes() {
        let [source, destination] =
            [1, 2].map(|n| std::net::SocketAddr::from(([192, 0, 2, n], 443)));
        let flow = RecentFlow {
            source,
            destination,
            goodput_bps: None,
            rtt_s: None,
            bytes: 0,
            retransmitted_segments: 0,
            limited_by: Class::Unknown,
            brief: Class::Unknown.brief(),
            share_of_time: 0.0,
            measuring: false,
        };
        let words =
            |flow: &RecentFlow| line(flow).split_whitespace().skip(2).collect::<Vec<_>>().join(" ");
        assert_eq!(words(&flow), "- - -");
        assert_eq!(words(&RecentFlow { rtt_s: Some(17e-6), ..flow.clone() }), "- 0.017 -");
        let none_shown = table(std::slice::from_ref(&flow), 0, 0);
        assert_eq!(none_shown, "1 more connection (--flows N)");
        // The longest row fills the 80 columns.
        let end = std::net::SocketAddr::from(([192, 168, 100, 100], 65_535));
        let (rate, rtt) = (Some(9.99999e9), Some(9.9999));
        let long = RecentFlow {
            source: end,
            destination: end,
            goodput_bps: rate,
            rtt_s: rtt,
            share_of_time: 1.0,
            brief: Class::WaitingForPeer.brief(),
            ..flow.clone()
        };
        assert_eq!(line(&long).chars().count(), 80, "{}", line(&long));
        let goodput_bps = Some(0.0);
        let later = RecentFlow { share_of_time: 0.5, brief: "idle", goodput_bps, ..flow };
        assert_eq!(words(&later), "0.00 - 50 % idle");
        assert_eq!(words(&RecentFlow { measuring: true, ..later }), "0.00 - measuring");
    }
}
