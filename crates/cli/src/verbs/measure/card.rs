//! Prints a measurement for a terminal of 80 columns.

use std::fmt::Display;

use sweetspot_measure::{
    Bound, DelayUnderLoad, Direction, DirectionReport, Discipline, Finding, Quantity,
};
use sweetspot_transfer::Measured;
use sweetspot_units::{Bytes, Duration};

use super::outlook::{Expected, Outlook, RANGE, WINDOW_RATIO};
use super::words::short;
use sweetspot_program::print::wrapped;
use sweetspot_program::progress;

/// The width of names, and of each direction's column.
const NAME: usize = 19;
const COLUMN: usize = 29;
/// Printed in place of a value; [`unknown_reasons`] gives the reason.
pub const UNKNOWN: &str = "unknown";

pub fn print(measured: &Measured, outlook: &Outlook) {
    let report = &measured.report;
    out!("Path to {}, {}", measured.peer, time_taken(measured));
    let round_trip = &report.round_trip;
    out!("{}", row("base RTT", &[of(&round_trip.base, false)]));
    out!("{}", row("  variation", &[variation(&round_trip.variation)]));
    if let Some((first, last)) = report.changed {
        let words = "so the results in between mix two paths: measure again";
        wrapped(&format!("The base RTT changed from {first} to {last}, {words}."), "");
    }
    if !report.directions.is_empty() {
        rates(&report.directions);
    }
    tcp(measured);
    let intrusion = &report.intrusion;
    let queue = match intrusion.longest_queue_s {
        0.0 => "no queue was observed".to_owned(),
        longest => {
            format!("the longest observed queue was {}", rounded(Duration::from_secs_f64(longest)))
        }
    };
    wrapped(&format!("Both ends sent {} in total; {queue}.", Bytes::new(intrusion.bytes)), "");
    unknown(measured);
    expected(outlook, report.directions.first());
}

/// How long the measurement took, and whether it is complete.
pub fn time_taken(measured: &Measured) -> String {
    let end = progress::stop_code().map_or("", |_| " and interrupted: the results so far");
    format!("measured in {}{end}", rounded(measured.took))
}

/// The results of both directions, side by side.
fn rates(directions: &[DirectionReport]) {
    let each = |name: &str, cell: &dyn Fn(&DirectionReport) -> String| {
        row(name, &directions.iter().map(cell).collect::<Vec<_>>())
    };
    let mut rows = vec![
        each("", &|d| direction_label(d.direction).to_owned()),
        each("capacity", &|d| of(&d.capacity, true)),
        each("available", &|d| of(&d.available, true)),
        each("buffer", &|d| of(&d.buffer.bytes, false)),
        each("  as delay", &|d| of(&d.buffer.delay, false)),
        each("queue discipline", &discipline),
        each("random loss", &loss),
        each("reordered", &|d| match d.reordering.arrived {
            0 => UNKNOWN.to_owned(),
            arrived => format!("{} of {arrived}", d.reordering.reordered),
        }),
        each("jitter", &|d| of(&d.jitter, false)),
    ];
    if directions.iter().any(|d| d.loss.burst.value().is_some()) {
        rows.insert(7, each("  mean loss burst", &loss_burst));
    }
    if directions.iter().any(|d| d.burst.is_some()) {
        let burst = |d: &DirectionReport| d.burst.map_or("none".to_owned(), short);
        rows.insert(2, each("  token bucket", &burst));
    }
    if directions.iter().any(|d| d.load.is_some()) {
        rows.extend(loads(directions));
    }
    out!("{}", rows.join("\n"));
    wrapped("Ranges and ± are 95 % intervals, or bounds.", "");
    if directions.iter().any(|d| d.load.is_some()) {
        wrapped(
            "Under load, the RTT is the median of another flow; round trips/min follow from the mean RTT of that flow and of the TCP \
             connection.",
            "",
        );
    }
}

/// The name of a direction, as seen from this host.
pub fn direction_label(direction: Direction) -> &'static str {
    match direction {
        Direction::Down => "Down (download, to you)",
        Direction::Up => "Up (upload, from you)",
    }
}

fn row(name: &str, cells: &[String]) -> String {
    let cells: String = cells.iter().map(|cell| format!("{cell:<COLUMN$} ")).collect();
    format!("  {name:<NAME$}{cells}").trim_end().to_owned()
}

/// A value with its interval: as half of its width if `even`, otherwise as its ends. A bound stands alone.
pub fn of<T: Copy + Display + Quantity>(finding: &Finding<T>, even: bool) -> String {
    let estimate = match finding {
        Finding::Known { estimate, .. } => *estimate,
        Finding::Bounded { bound: Bound::AtLeast(low), .. } => {
            return format!("at least {}", short(low));
        }
        Finding::Bounded { bound: Bound::AtMost(high), .. } => {
            return format!("at most {}", short(high));
        }
        Finding::Unknown(_) => return UNKNOWN.into(),
    };
    let (low, high) = (estimate.low.number(), estimate.high.number());
    let value = estimate.value.number();
    if even && value > 0.0 {
        let percent = (high - low) / 2.0 / value * 100.0;
        format!("{} ± {percent:.1} %", short(estimate.value))
    } else {
        format!("{} ({} to {})", short(estimate.value), short(estimate.low), short(estimate.high))
    }
}

/// The difference between the 95th and the 5th percentile of the idle RTT.
pub fn variation(finding: &Finding<Duration>) -> String {
    finding.value().map_or(UNKNOWN.into(), |span| format!("{} (p95 - p5)", short(span)))
}

fn rounded(span: Duration) -> String {
    short(span)
}

fn discipline(report: &DirectionReport) -> String {
    match &report.discipline {
        Ok(Discipline::Policer { burst }) => format!("policer, burst {}", short(*burst)),
        Ok(found) => found.name().to_owned(),
        Err(_) => UNKNOWN.into(),
    }
}

fn loss(report: &DirectionReport) -> String {
    match report.loss.rate.estimate() {
        None => UNKNOWN.into(),
        Some(estimate) if report.loss.lost == 0 => {
            format!("none; below {:.2} %", estimate.high.get() * 100.0)
        }
        Some(estimate) => format!(
            "{:.3} % ({:.3} to {:.3})",
            estimate.value.get() * 100.0,
            estimate.low.get() * 100.0,
            estimate.high.get() * 100.0
        ),
    }
}

fn loss_burst(report: &DirectionReport) -> String {
    match report.loss.burst.estimate() {
        None => UNKNOWN.into(),
        Some(burst) if burst.low == burst.high && burst.value == 1.0 => "1 packet".into(),
        Some(_) => format!("{} packets", of(&report.loss.burst, false)),
    }
}

fn loads(directions: &[DirectionReport]) -> [String; 5] {
    let each = |name: &str, show: &dyn Fn(&DelayUnderLoad) -> String| {
        let cell = |d: &DirectionReport| d.load.as_ref().map_or(UNKNOWN.to_owned(), show);
        row(name, &directions.iter().map(cell).collect::<Vec<_>>())
    };
    let unknown = || UNKNOWN.to_owned();
    [
        each("under load by", &|load| load.congestion.clone()),
        each("  goodput", &|load| load.goodput.value().map_or_else(unknown, short)),
        each("  median RTT", &|load| of(&load.round_trip, false)),
        each("  round trips/min", &|load| {
            load.responsiveness.value().map_or_else(unknown, |rpm| format!("{rpm:.0}"))
        }),
        each("  grade", &|load| graded(load)),
    ]
}

/// The grade, the increase of the RTT behind it, and the grade's range.
pub fn graded(load: &DelayUnderLoad) -> String {
    let Some((grade, increase)) = load.grade.zip(load.increase) else { return "-".into() };
    let name = grade.name();
    format!("{name} (+{}; {name}: {})", short(increase), grade.increase())
}

fn tcp(measured: &Measured) {
    let tcp = &measured.tcp;
    let scale = match tcp.window_scale {
        Some((send, receive)) => format!("window scales {send} and {receive}"),
        None => "no window scaling".into(),
    };
    let has = |has: bool, name: &str| if has { name.to_owned() } else { format!("no {name}") };
    let (sack, ecn) = (has(tcp.sack, "SACK"), has(tcp.ecn, "ECN"));
    let timestamps = has(tcp.timestamps, "timestamps");
    let words = format!(
        "MTU {} B, segments of {} B, {scale}, {sack}, {timestamps}, {ecn}.",
        tcp.path_mtu.get(),
        tcp.segment.get()
    );
    wrapped(&words, "");
}

/// The unknown quantities and the skipped measurements, each once with its reason.
pub fn unknown_reasons(measured: &Measured) -> Vec<String> {
    let report = &measured.report;
    report.left_out.iter().cloned().chain(report.directions.iter().flat_map(reasons_of)).collect()
}

/// The reasons of one direction. The reason of a skipped step applies to its quantities.
fn reasons_of(report: &DirectionReport) -> Vec<String> {
    let direction_label = report.direction.name();
    let mut skipped: Vec<(&str, &str, bool)> = report
        .left_out
        .iter()
        .map(|left| left.split_once(": ").unwrap_or((left, "skipped")))
        .map(|(what, why)| (what, why, false))
        .collect();
    let discipline = report.discipline.as_ref().err().map(ToString::to_string);
    // Each quantity with the steps that measure it, named as in `Measurement::progress`.
    let available = "available bandwidth";
    // Without loss, there are no bursts to report.
    let burst = report.loss.burst.why().filter(|_| report.loss.lost > 0);
    let quantities = [
        ("capacity", report.capacity.why(), "rough capacity"),
        (available, report.available.why(), available),
        ("buffer", report.buffer.bytes.why(), "buffer and queue discipline"),
        ("queue discipline", discipline.as_ref(), "buffer and queue discipline"),
        ("random loss", report.loss.rate.why(), "random loss"),
        ("mean loss burst", burst, "random loss"),
        ("jitter", report.jitter.why(), available),
    ];
    let mut reasons: Vec<(String, String)> = Vec::new();
    let mut add = |what: &str, why: &str| match reasons.iter_mut().find(|(_, known)| known == why) {
        Some((names, _)) if names.split(", ").any(|name| name == what) => {}
        Some((names, _)) => *names += &format!(", {what}"),
        None => reasons.push((what.to_owned(), why.to_owned())),
    };
    for (what, why, step) in quantities {
        let Some(why) = why else { continue };
        let mut its_own = skipped.iter_mut().filter(|(name, ..)| name.starts_with(step)).peekable();
        match its_own.peek() {
            Some((_, reason, _)) => add(what, reason),
            None => add(what, why),
        }
        its_own.for_each(|(.., is_told)| *is_told = true);
    }
    let has_capacity = report.capacity.value().is_some();
    let mut is_refined = false;
    for (what, why, _) in skipped.iter().filter(|(.., is_told)| !is_told) {
        match what.ends_with("capacity") {
            false => add(what, why),
            // An unknown capacity has its own reason already.
            true if !has_capacity || std::mem::replace(&mut is_refined, true) => {}
            true => add("a more exact capacity", why),
        }
    }
    reasons.into_iter().map(|(what, why)| format!("{what} ({direction_label}): {why}")).collect()
}

fn unknown(measured: &Measured) {
    let reasons = unknown_reasons(measured);
    if !reasons.is_empty() {
        out!("Unknown or only bounded, with the reason:");
        reasons.iter().for_each(|reason| wrapped(reason, "  "));
    }
}

/// The simulation of the direction measured first.
fn expected(outlook: &Outlook, first: Option<&DirectionReport>) {
    if let Some(why) = &outlook.unknown {
        return wrapped(&format!("The throughput of TCP was not simulated: {why}."), "");
    }
    let of_what = match first.map(|d| d.direction) {
        Some(Direction::Down) => "download",
        Some(Direction::Up) => "upload",
        None => "transfer",
    };
    let runs = outlook.runs;
    wrapped(&format!("Goodput of one TCP {of_what}, mean (range) of {runs} simulations:"), "");
    let line = |name: &str, rate: &str, rtt: &str, lost: &str| {
        format!("  {name:<NAME$}{rate:<31} {rtt:>9}  {lost:>7}").trim_end().to_owned()
    };
    let of = |name: &str, e: &Expected| {
        let (rtt, lost) =
            (format!("{:.1} ms", e.rtt_s * 1e3), format!("{:.2} %", e.loss_rate * 100.0));
        line(name, &ranged(e, outlook), &rtt, &lost)
    };
    let mut lines = vec![line("", "", "mean RTT", "lost")];
    lines.extend(outlook.congestion.iter().map(|e| of(e.congestion, e)));
    if let Some((window, e)) = outlook.window_bytes.zip(outlook.window.as_ref()) {
        lines.push(of(&held(e, window), e));
    }
    out!("{}", lines.join("\n"));
    for note in notes(outlook) {
        wrapped(&note, "");
    }
}

/// Explains the simulated rates, one sentence each.
pub fn notes(outlook: &Outlook) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some((window, held)) = outlook.window_bytes.zip(outlook.window.as_ref()) {
        let window = Bytes::new(window);
        notes.push(format!("{window} is {WINDOW_RATIO} times rate x RTT."));
        notes.extend((!outlook.is_upper_bound && is_ranged(held)).then(|| RANGE.to_owned()));
    }
    if !outlook.assumed.is_empty() {
        notes.push(assumptions(outlook));
    }
    notes.extend(outlook.contradiction.clone());
    notes
}

/// The assumptions behind the simulated rates, as a sentence.
fn assumptions(outlook: &Outlook) -> String {
    let lower = if outlook.is_upper_bound { " Random loss would lower these rates." } else { "" };
    format!("Not measured, and assumed: {}.{lower}", outlook.assumed.join("; "))
}

/// The label of a transfer with a fixed window.
pub fn held(expected: &Expected, window: u64) -> String {
    format!("{} at {}", expected.congestion, Bytes::new(window))
}

/// A simulated rate in Mbit/s, with its interval unless that is a point. An upper bound has no
/// interval.
pub fn ranged(expected: &Expected, outlook: &Outlook) -> String {
    let mean = short(expected.goodput_bps / 1e6);
    let [low, high] = ends(expected);
    match (outlook.is_upper_bound, is_ranged(expected)) {
        (true, _) => format!("at most {mean} Mbit/s"),
        (false, false) => format!("{mean} Mbit/s"),
        (false, true) => format!("{mean} Mbit/s ({low} to {high})"),
    }
}

/// The ends of a rate's interval, in Mbit/s.
fn ends(expected: &Expected) -> [String; 2] {
    [expected.goodput_low_bps, expected.goodput_high_bps].map(|bps| short(bps / 1e6))
}

/// Whether the interval is printed, because its ends differ.
fn is_ranged(expected: &Expected) -> bool {
    let [low, high] = ends(expected);
    low != high
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_measure::Grade;
    use sweetspot_units::Rate;

    /// The columns are 29 characters wide.
    #[test]
    fn a_bound_and_a_grade_fit_in_their_cells() {
        let low = Bound::AtLeast(Rate::from_mbit_per_second(1165));
        assert_eq!(of(&Finding::bounded(low, "why"), true), "at least 1.17 Gbit/s");
        let high = Bound::AtMost(Duration::from_micros(261));
        assert_eq!(of(&Finding::bounded(high, "why"), false), "at most 261 us");
        for (us, words) in [
            (4_500, "A+ (+4.50 ms; A+: below 5 ms)"),
            (210_000, "D (+210 ms; D: 200 to 400 ms)"),
            (1_500_000, "F (+1.50 s; F: from 400 ms)"),
        ] {
            let increase = Duration::from_micros(us);
            let load = DelayUnderLoad {
                goodput: Finding::unknown(""),
                round_trip: Finding::unknown(""),
                responsiveness: Finding::unknown(""),
                grade: Some(Grade::of(increase)),
                increase: Some(increase),
                congestion: String::new(),
                retransmitted: 0,
            };
            assert_eq!(graded(&load), words);
            assert!(words.len() <= COLUMN);
        }
    }
}
