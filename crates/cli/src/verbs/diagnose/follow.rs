//! Prints a table of the observed connections every second.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use ratatui::crossterm::terminal;
use serde::Serialize;
use sweetspot_diagnose::following::{Ended, Following, RecentFlow};
use sweetspot_diagnose::live::{Live, SAMPLE_INTERVAL, Side};
use sweetspot_diagnose::report::{NO_TCP, Reading};
use sweetspot_diagnose::{Class, counted, percent};
use sweetspot_linux::clock;
use sweetspot_linux::diag::{Detail, DiagConnection};
use sweetspot_linux::namespace::NetworkNamespace;
use sweetspot_system::Interruption;
use sweetspot_trace::flow::SenderReport;
use sweetspot_units::{Duration, Time};
use sweetspot_watch::{MEASURING, NamespaceConnections, sample};

use super::followed::{ALL_DEVICES, Followed, PATIENCE};
use super::{DiagnoseArguments, show};
use crate::verbs::Ending;
use sweetspot_program::print::{Shown, clear_screen, out_while_read};
use sweetspot_program::usage_error::UsageError;

/// Interval between two tables.
const INTERVAL: Duration = Duration::from_secs(1);
/// Width of a table without a terminal.
const COLUMNS: usize = 80;
/// Width for the address and port of an end in [`COLUMNS`]: any IPv4 address fits.
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
    let connections = NamespaceConnections::own().and_then(|mut own| own.read(Detail::ALL));
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

/// The kernel's counters of the connections of this host.
#[derive(Default)]
struct OwnEnds {
    watched: HashMap<[SocketAddr; 2], Live>,
    due: Time,
}

impl OwnEnds {
    /// Samples them, if that is due at `now`.
    fn sample(&mut self, now: Time) {
        if now < self.due {
            return;
        }
        for connection in own_connections() {
            let Some(sample) = sample(&connection, now) else { continue };
            let (local, remote) = (connection.local, connection.remote);
            let live = self.watched.entry([local, remote]);
            live.or_insert_with(|| Live::between(local.ip(), remote.ip())).handle(sample);
        }
        self.watched.retain(|_, live| live.last().is_some_and(|last| last.at == now));
        // On a host with thousands of connections, this takes at most a twentieth of the time.
        self.due = now + SAMPLE_INTERVAL.max(clock::now().since(now) * 20);
    }

    /// Reports on their programs to `reading`. A capture shows evenly spaced segments, pauses and full windows, but not why.
    fn report_to(&self, reading: &mut Reading) {
        for (ends, live) in &self.watched {
            let report = SenderReport {
                pacing_limit: live.last().and_then(|last| last.pacing_limit),
                is_stopped_by_buffer: live.limits().dominant() == Class::SenderWindow,
                keeps_data_waiting: live.keeps_data_waiting(),
            };
            reading.know_sender(*ends, report);
            let receives = live.direction() == Side::Receiver;
            let limit = live.limits().dominant();
            reading.know_reader(*ends, receives && limit == Class::ReceiverApplication);
        }
    }
}

/// Follows `what` until --for has passed or a signal arrives, and then reports on all of it, as on a capture.
pub fn run(what: &Path, arguments: &DiagnoseArguments) -> Ending {
    if what == Path::new("-") {
        let wrong = "--follow -: standard input cannot be followed; write it to a file and follow that, or read it to its end: \
                     sweetspot diagnose -";
        return Err(UsageError::new(wrong).into());
    }
    arguments.netns.as_deref().map_or(Ok(()), enter)?;
    let mut followed = Followed::open(what)?;
    let mut reading = Reading::new(arguments.max_flows());
    let (mut following, mut own) = (Following::default(), OwnEnds::default());
    let is_device = matches!(followed, Followed::Device { .. });
    if is_device {
        know_scales(&mut reading);
        own.sample(clock::now());
        own.report_to(&mut reading);
    }
    let mut interruption = Interruption::hold()?;
    let mut code;
    let started = clock::now();
    let end = arguments.watch_for.map(|time| started + time);
    let mut due = started + INTERVAL;
    let (mut last, mut shown, mut is_first) = (Time::ZERO, Time::ZERO, true);
    loop {
        let now = clock::now();
        code = interruption.wait_until(now)?;
        if code.is_some() {
            break;
        }
        if is_device {
            own.sample(now);
        }
        if now >= end.map_or(due, |end| end.min(due)) {
            own.report_to(&mut reading);
            // Time passes on a device without packets, too.
            if is_device && last == shown && last > Time::ZERO {
                last += INTERVAL;
            }
            shown = last;
            let flows = following.sample(reading.table(), last);
            let is_first = std::mem::replace(&mut is_first, false);
            let has_seen = reading.table().iter().next().is_some();
            let source = Source { lost: followed.lost(), lacks: followed.lacks(), has_seen };
            if !print(&flows, (last, now.since(started), is_first), &source, arguments)? {
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
    followed.finish(&mut |record| reading.take(record));
    let mut report = reading.report(None);
    if let Some(remark) = report.remarks.iter_mut().find(|remark| *remark == NO_TCP)
        && let Some(why) = why_no_tcp(what, &followed, clock::now().since(started))
    {
        *remark = why;
    }
    if arguments.json {
        out!("{}", serde_json::to_string(&report)?);
    } else {
        show::report(&report, arguments.flows);
    }
    Ok(code.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// Why nothing of TCP was seen in `time`, if another reason is known than the capture's filter.
fn why_no_tcp(what: &Path, followed: &Followed, time: Duration) -> Option<String> {
    let (name, time) = (what.shown(), time.as_secs_f64());
    match followed {
        Followed::Device { .. } if what == Path::new(ALL_DEVICES) => {
            Some(format!("no TCP packets passed any device in {time:.1} s"))
        }
        Followed::Device { .. } => Some(format!("no TCP packets passed {name} in {time:.1} s")),
        Followed::Files(_) => followed.lacks().map(|_| {
            format!("no capture came into {name} in {time:.1} s; write captures there: tcpdump -U -s 96 -G 60 -w {name}/%s.pcap tcp")
        }),
    }
}

/// The state of the source of packets.
#[derive(Default)]
struct Source {
    /// Packets lost because they came too fast.
    lost: u64,
    /// Why there are no packets yet, if another program has to do something first.
    lacks: Option<String>,
    /// Whether a connection was seen, which may have ended since.
    has_seen: bool,
}

/// Prints a table for the time up to `at`, which is `after` from the start. Returns false if the output's reader is
/// gone.
fn print(
    flows: &[RecentFlow],
    (at, after, is_first): (Time, Duration, bool),
    source: &Source,
    arguments: &DiagnoseArguments,
) -> Result<bool, Box<dyn std::error::Error>> {
    if arguments.json {
        let document = FollowDocument {
            at_s: at.as_secs_f64(),
            connections_total: flows.len(),
            lost_packets: source.lost,
            connections: &flows[..flows.len().min(arguments.max_flows())],
        };
        return Ok(out_while_read(format_args!("{}", serde_json::to_string(&document)?))?);
    }
    let screen = std::io::stdout().is_terminal();
    let size = terminal::size().ok().filter(|_| screen);
    let max = arguments.max_flows();
    let rows = size.map_or(max, |(_, height)| usize::from(height).saturating_sub(3).min(max));
    let ends = end_width(size.map_or(COLUMNS, |(width, _)| width.into()));
    let text = table(flows, rows, ends, source);
    if screen {
        clear_screen();
        return Ok(out_while_read(format_args!("{}\n{text}", heading(ends)))?);
    }
    // Output that is not a terminal has one heading, and a time above each table.
    let head = if is_first { heading(ends) + "\n" } else { String::new() };
    Ok(out_while_read(format_args!("{head}after {:.0} s:\n{text}", after.as_secs_f64()))?)
}

/// The width for each end in a table of `columns`. Narrow tables cut addresses; wide ones hold any IPv6 address.
fn end_width(columns: usize) -> usize {
    const PORT: usize = ":65535".len();
    const LONGEST: usize = "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535".len();
    (2 * END_WIDTH + columns).saturating_sub(COLUMNS).div_euclid(2).clamp(PORT + 1, LONGEST)
}

fn heading(ends: usize) -> String {
    format!(
        "{:<ends$} {:<ends$} {:>7} {:>6}  limited by",
        "source", "destination", "Mbit/s", "RTT ms"
    )
}

/// The table without its heading.
fn table(
    flows: &[RecentFlow],
    rows: usize,
    ends: usize,
    Source { lost, lacks, has_seen }: &Source,
) -> String {
    let mut lines: Vec<String> = flows.iter().take(rows).map(|flow| line(flow, ends)).collect();
    if flows.is_empty() {
        let none = if *has_seen { "no connection is open" } else { "no TCP packets yet" };
        lines.push(lacks.clone().unwrap_or_else(|| none.to_owned()));
    }
    if flows.len() > rows {
        let left = (flows.len() - rows) as u64;
        lines.push(format!("{} (--flows N)", counted(left, "more connection", "more connections")));
    }
    if *lost > 0 {
        let packets =
            counted(*lost, "packet arrived too fast and was", "packets arrived too fast and were");
        lines.push(format!("{packets} lost"));
    }
    lines.join("\n")
}

fn line(flow: &RecentFlow, ends: usize) -> String {
    // Within a host, a round trip takes microseconds.
    let digits = |rtt: f64| if rtt < 1e-4 { 3 } else { 1 };
    let ms = |rtt: f64| format!("{:.*}", digits(rtt), rtt * 1e3);
    let at_least = flow.rtt_at_least_s.map(|rtt| format!("≥{}", ms(rtt)));
    let rtt = flow.rtt_s.map(ms).or(at_least).unwrap_or_else(|| "-".to_owned());
    // A rate needs two samples, and a limit some more time.
    let rate = flow.goodput_bps.map_or("-".to_owned(), |rate| format!("{:.2}", rate / 1e6));
    let limit = match percent(flow.share_of_time) {
        _ if flow.ended.is_some() => flow.ended.map_or("", Ended::brief).to_owned(),
        _ if flow.measuring => MEASURING.to_owned(),
        0.0 => "-".to_owned(),
        share => format!("{share:.0} % {}", flow.brief),
    };
    let [source, destination] = [flow.source, flow.destination].map(|end| show::end(end, ends));
    format!("{source:<ends$} {destination:<ends$} {rate:>7} {rtt:>6}  {limit}")
}

#[cfg(test)]
mod tests {
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
            rtt_at_least_s: None,
            bytes: 0,
            retransmitted_segments: 0,
            limited_by: Class::Unknown,
            brief: Class::Unknown.brief(),
            share_of_time: 0.0,
            measuring: false,
            ended: None,
        };
        let words = |flow: &RecentFlow| {
            line(flow, END_WIDTH).split_whitespace().skip(2).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words(&flow), "- - -");
        assert_eq!(words(&RecentFlow { rtt_s: Some(17e-6), ..flow.clone() }), "- 0.017 -");
        let at_least = RecentFlow { rtt_at_least_s: Some(0.0412), ..flow.clone() };
        assert_eq!(words(&at_least), "- ≥41.2 -");
        let none_shown = table(std::slice::from_ref(&flow), 0, END_WIDTH, &Source::default());
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
        for columns in [60, COLUMNS, 120] {
            let longest = line(&long, end_width(columns));
            assert_eq!(longest.chars().count(), columns, "{longest}");
        }
        let narrow = line(&long, end_width(60));
        assert!(narrow.starts_with("….100:65535 ….100:65535"), "{narrow}");
        let goodput_bps = Some(0.0);
        let later = RecentFlow { share_of_time: 0.5, brief: "idle", goodput_bps, ..flow };
        assert_eq!(words(&later), "0.00 - 50 % idle");
        assert_eq!(words(&RecentFlow { measuring: true, ..later.clone() }), "0.00 - measuring");
        assert_eq!(words(&RecentFlow { ended: Some(Ended::Reset), ..later }), "0.00 - reset");
    }
}
