//! Prints a measurement for a terminal of 80 columns.

use std::fmt::Display;

use sweetspot_measure::{
    Bound, DelayUnderLoad, Direction, DirectionReport, Discipline, Estimate, Finding, Grade,
    Purpose, Quantity, Report,
};
use sweetspot_transfer::Measured;
use sweetspot_units::{Bytes, Duration, Rate};

use super::outlook::{Expected, Outlook, WINDOW_RATIO};
use super::words::{Reasons, range, short};
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
    out!("{}", row("base RTT", &[of(&round_trip.base)]));
    out!("{}", row("  idle median", &[of(&round_trip.median)]));
    out!("{}", row("  variation", &[variation(&round_trip.variation)]));
    if let Some((first, last)) = report.changed {
        let words = "so the results in between mix two paths: measure again";
        wrapped(&format!("The base RTT changed from {first} to {last}, {words}."), "");
    }
    if !report.directions.is_empty() {
        rates(&report.directions);
    }
    wrapped(&tcp(measured), "");
    wrapped(&disturbance(report), "");
    unknown(measured);
    expected(outlook, report.directions.first());
}

/// The bytes and the queue that the measurement caused. Handshakes alone cannot fill a queue.
pub fn disturbance(report: &Report) -> String {
    let queue = match report.intrusion.longest_queue_s {
        _ if report.directions.is_empty() => String::new(),
        0.0 => "; no queue was observed".to_owned(),
        longest => {
            format!("; the longest observed queue was {}", short(Duration::from_secs_f64(longest)))
        }
    };
    format!("Both ends sent {} in total{queue}.", Bytes::new(report.intrusion.bytes))
}

/// How long the measurement took, and whether it is complete.
pub fn time_taken(measured: &Measured) -> String {
    let end = progress::stop_code().map_or("", |_| " and interrupted: the results so far");
    format!("measured in {}{end}", short(measured.took))
}

/// The results of both directions, side by side.
fn rates(directions: &[DirectionReport]) {
    let each = |name: &str, cell: &dyn Fn(&DirectionReport) -> String| {
        row(name, &directions.iter().map(cell).collect::<Vec<_>>())
    };
    let mut rows = vec![
        each("", &|d| direction_label(d.direction).to_owned()),
        each("capacity", &|d| rate(&d.capacity)),
        each("available", &|d| rate(&d.available)),
        each("buffer", &|d| of(&d.buffer.bytes)),
        each("  as delay", &|d| of(&d.buffer.delay)),
        each("queue discipline", &discipline),
        each("random loss", &loss),
        each("reordered", &reordered),
        each("jitter", &|d| of(&d.jitter)),
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

/// A value with its interval. A bound stands alone.
pub fn of<T: Copy + Display + Quantity>(finding: &Finding<T>) -> String {
    match finding {
        Finding::Known { estimate, .. } => match estimate.interval() {
            Some((low, high)) => format!("{} ({})", short(estimate.value), range(low, high)),
            None => short(estimate.value),
        },
        Finding::Bounded { bound: Bound::AtLeast(low), .. } => format!("at least {}", short(low)),
        Finding::Bounded { bound: Bound::AtMost(high), .. } => format!("at most {}", short(high)),
        Finding::Unknown(_) => UNKNOWN.into(),
    }
}

/// A rate with half the width of its interval in percent; if both halves differ at this precision, only the interval.
pub fn rate(finding: &Finding<Rate>) -> String {
    let Some(Estimate { value, low, high }) = finding.estimate() else { return of(finding) };
    let [value_bps, low_bps, high_bps] = [value, low, high].map(Rate::as_f64);
    let below = (value_bps - low_bps) / value_bps * 100.0;
    let above = (high_bps - value_bps) / value_bps * 100.0;
    match value > Rate::ZERO && (above - below).abs() < 0.1 {
        true => format!("{} ± {:.1} %", short(value), above.max(below)),
        false => range(low, high),
    }
}

/// The difference between the 95th and the 5th percentile of the idle RTT.
pub fn variation(finding: &Finding<Duration>) -> String {
    finding.value().map_or(UNKNOWN.into(), |span| format!("{} (p95 - p5)", short(span)))
}

fn discipline(report: &DirectionReport) -> String {
    match &report.discipline {
        Ok(Discipline::Policer { burst }) => format!("policer, burst {}", short(*burst)),
        Ok(found) => found.name().to_owned(),
        Err(_) => UNKNOWN.into(),
    }
}

fn loss(report: &DirectionReport) -> String {
    match &report.loss.rate {
        Finding::Bounded { bound: Bound::AtMost(most), .. } => {
            format!("at most {:.2} %", most.get() * 100.0)
        }
        Finding::Bounded { .. } | Finding::Unknown(_) => UNKNOWN.into(),
        Finding::Known { estimate, .. } if report.loss.lost == 0 => {
            format!("none; below {:.2} %", estimate.high.get() * 100.0)
        }
        Finding::Known { estimate, .. } => format!(
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
        Some(_) => format!("{} packets", of(&report.loss.burst)),
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
        each("  median RTT", &|load| of(&load.round_trip)),
        each("  round trips/min", &|load| {
            load.responsiveness.value().map_or_else(unknown, |rpm| format!("{rpm:.0}"))
        }),
        each("  grade", &|load| graded(load)),
    ]
}

/// The grades of the increase's interval, and the interval.
pub fn graded(load: &DelayUnderLoad) -> String {
    let Some(increase) = load.increase else { return "-".into() };
    let Some((low, high)) = load.increase_interval() else {
        return format!("{} (+{})", Grade::of(increase).name(), short(increase));
    };
    format!("{} (+{})", grades(load), range(low, high))
}

/// The grade, or the grades of both ends of the increase's interval.
pub fn grades(load: &DelayUnderLoad) -> String {
    let Some(increase) = load.increase else { return "-".into() };
    let (low, high) = load.increase_interval().unwrap_or((increase, increase));
    match (Grade::of(low).name(), Grade::of(high).name()) {
        (best, worst) if best == worst => best.to_owned(),
        (best, worst) => format!("{best} to {worst}"),
    }
}

/// The share of packets that arrived after a later one.
pub fn reordered(report: &DirectionReport) -> String {
    match report.reordering.arrived {
        0 => UNKNOWN.to_owned(),
        arrived => format!("{} of {arrived}", report.reordering.reordered),
    }
}

/// The MTU and the options that TCP negotiated.
pub fn tcp(measured: &Measured) -> String {
    let tcp = &measured.tcp;
    let scale = match tcp.window_scale {
        Some((send, receive)) => format!("window scales {send} and {receive}"),
        None => "no window scaling".into(),
    };
    let has = |has: bool, name: &str| if has { name.to_owned() } else { format!("no {name}") };
    let (sack, ecn) = (has(tcp.sack, "SACK"), has(tcp.ecn, "ECN"));
    let timestamps = has(tcp.timestamps, "timestamps");
    format!(
        "MTU {} B, segments of {} B, {scale}, {sack}, {timestamps}, {ecn}.",
        tcp.path_mtu.get(),
        tcp.segment.get()
    )
}

/// The unknown quantities and the skipped measurements, each once with its reason.
pub fn unknown_reasons(measured: &Measured) -> Vec<String> {
    let report = &measured.report;
    let of_rtt = report.left_out.iter().map(ToString::to_string);
    of_rtt.chain(report.directions.iter().flat_map(reasons_of)).collect()
}

fn reasons_of(report: &DirectionReport) -> Vec<String> {
    let discipline = report.discipline.as_ref().err().map(ToString::to_string);
    let none_arrived = report.reordering.arrived == 0;
    // Without loss, there are no bursts to report.
    let burst = report.loss.burst.why().filter(|_| report.loss.lost > 0);
    let quantities = [
        ("capacity", report.capacity.why()),
        ("available bandwidth", report.available.why()),
        ("buffer", report.buffer.bytes.why()),
        ("queue discipline", discipline.as_ref()),
        ("random loss", report.loss.rate.why()),
        ("mean loss burst", burst),
        ("reordering", report.capacity.why().filter(|_| none_arrived)),
        ("jitter", report.jitter.why()),
    ];
    let mut reasons = Reasons::default();
    quantities
        .into_iter()
        .for_each(|(what, why)| why.into_iter().for_each(|w| reasons.add(what, w)));
    for skipped in &report.left_out {
        let is_listed = match skipped.purpose {
            Purpose::Load => false,
            Purpose::Queue => !skipped.is_cut_short || report.buffer.bytes.why().is_some(),
            Purpose::Rest => reasons.has(&skipped.why),
            // The unknown quantity has a reason of its own.
            _ => !skipped.is_cut_short,
        };
        if !is_listed {
            reasons.add(skipped.name(), &skipped.why);
        }
    }
    let direction = report.direction.name();
    reasons
        .0
        .into_iter()
        .map(|(why, what)| format!("{} ({direction}): {why}", what.join(", ")))
        .collect()
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
    wrapped(&format!("Goodput of one TCP {of_what}, {}:", simulations(outlook)), "");
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

/// The loss behind the simulated rates, and behind their intervals. An upper bound has no interval.
pub fn simulations(outlook: &Outlook) -> String {
    let mean = format!("mean of {} simulations", outlook.runs);
    match outlook.is_upper_bound {
        true => mean,
        false => format!("{mean} at the measured loss (at its 95 % bounds)"),
    }
}

/// Explains the simulated rates, one sentence each.
pub fn notes(outlook: &Outlook) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(window) = outlook.window_bytes.map(Bytes::new) {
        notes.push(format!("{window} is {WINDOW_RATIO} times rate x RTT."));
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

    #[test]
    fn plus_minus_stands_only_for_an_interval_with_its_value_in_the_middle() {
        let found = |[low, value, high]: [u64; 3]| {
            let [low, value, high] = [low, value, high].map(Rate::from_mbit_per_second);
            rate(&Finding::known(value, low, high, ""))
        };
        // 2 of 40 are 5 %.
        assert_eq!(found([38, 40, 42]), "40.0 Mbit/s ± 5.0 %");
        assert_eq!(found([30, 30, 40]), "30.0 to 40.0 Mbit/s");
        assert_eq!(found([38, 40, 41]), "38.0 to 41.0 Mbit/s");
        assert_eq!(found([0, 0, 4]), "0 to 4.00 Mbit/s");
    }

    /// The columns are 29 characters wide.
    #[test]
    fn a_bound_and_a_grade_fit_in_their_cells() {
        let low = Bound::AtLeast(Rate::from_mbit_per_second(1165));
        assert_eq!(rate(&Finding::bounded(low, "why")), "at least 1.17 Gbit/s");
        let high = Bound::AtMost(Duration::from_micros(261));
        assert_eq!(of(&Finding::bounded(high, "why")), "at most 261 us");
        // The medians of the parts are these RTTs; the idle RTT is 40 ms.
        for ([low, us, high], words) in [
            ([4_500, 4_500, 4_500], "A+ (+4.50 ms)"),
            ([3_120, 4_500, 4_900], "A+ (+3.12 to 4.90 ms)"),
            ([3_120, 8_270, 19_700], "A+ to A (+3.12 to 19.7 ms)"),
            ([950, 8_270, 19_700], "A+ to A (+950 us to 19.7 ms)"),
            ([390_000, 700_000, 1_500_000], "D to F (+390 ms to 1.50 s)"),
        ] {
            let increase = Duration::from_micros(us);
            let [low, rtt, high] = [low, us, high].map(|us| Duration::from_micros(40_000 + us));
            let load = DelayUnderLoad {
                goodput: Finding::unknown(""),
                round_trip: Finding::known(rtt, low, high, ""),
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
