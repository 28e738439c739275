//! A measurement as a self-contained page.

use std::fmt::Display;

use maud::{Markup, html};
use sweetspot_experiment::plot::{Axis, MarkPosition, Origin, Plot, Table};
use sweetspot_measure::{DelayPoint, DirectionReport, Discipline, Finding, Quantity};
use sweetspot_report::{Theme, cards, html_document, in_html, table_element};
use sweetspot_statistics::Sorted;
use sweetspot_transfer::Measured;

use super::card::{
    UNKNOWN, direction_label, disturbance, graded, held, notes, of, ranged, reordered, simulations,
    tcp, time_taken, unknown_reasons, variation,
};
use super::outlook::Outlook;
use super::verdict::Verdict;
use super::words::{range, short};

/// The page; `verb` is the command that measured.
pub fn page(measured: &Measured, outlook: &Outlook, verdict: &Verdict, verb: &str) -> String {
    let report = &measured.report;
    let headline = verdict.message();
    let mut table = Table::new("", &["", "value", "95 % interval, or bounds", "method"]);
    let round_trip = &report.round_trip;
    row(&mut table, "base RTT", &round_trip.base);
    row(&mut table, "idle median", &round_trip.median);
    let how = round_trip.variation.how().to_owned();
    let spread = variation(&round_trip.variation);
    table.rows.push(vec!["variation of the idle RTT".to_owned(), spread, String::new(), how]);
    let pictures = pictures(measured);
    let reasons = unknown_reasons(measured);
    let body = html! {
        header {
            p.brand { "sweetspot " (verb) }
            h1 { (in_html(headline)) }
            p { "Path to " (measured.peer) }
            @for line in verdict.lines() { p { (in_html(line)) } }
            @if let Some(command) = verdict.remedy() {
                p { "To hold downloads at that window:" }
                pre { (command) }
            }
            p.note { (in_html(&tcp(measured))) }
            p.note { (in_html(&about(measured))) }
        }
        @if let Some((first, last)) = report.changed {
            p {
                "The base RTT changed from " (first) " to " (last)
                ", so the results in between mix two paths."
            }
        }
        @if !pictures.is_empty() { (section("Pictures", &cards(&pictures))) }
        (section("RTT", &table_element(&table)))
        @for direction in &report.directions {
            (section(direction_label(direction.direction), &table_element(&findings(direction))))
        }
        (section("Goodput of one TCP transfer, simulated", &expected(outlook)))
        @if !reasons.is_empty() {
            (section(
                "Unknown or only bounded, with the reason",
                &html! { ul { @for reason in &reasons { li { (in_html(reason)) } } } },
            ))
        }
    };
    html_document(&format!("Sweetspot: path to {}", measured.peer), &body, Theme::Screen)
}

fn section(title: &str, content: &Markup) -> Markup {
    html! { section { h2 { (title) } (content) } }
}

fn about(measured: &Measured) -> String {
    let (version, took) = (env!("CARGO_PKG_VERSION"), time_taken(measured));
    format!("sweetspot {version}, {took}. {}", disturbance(&measured.report))
}

fn findings(report: &DirectionReport) -> Table {
    let mut table = Table::new("", &["", "value", "95 % interval, or bounds", "method"]);
    row(&mut table, "capacity", &report.capacity);
    if let Some(burst) = report.burst {
        let how = "where packets of trains begin to arrive more slowly".to_owned();
        table.rows.push(vec!["token bucket".to_owned(), short(burst), String::new(), how]);
    }
    row(&mut table, "available bandwidth", &report.available);
    row(&mut table, "buffer", &report.buffer.bytes);
    row(&mut table, "buffer, as delay at this rate", &report.buffer.delay);
    let (name, how) = match &report.discipline {
        Ok(Discipline::Policer { burst }) => (format!("policer, burst {burst}"), String::new()),
        Ok(found) => (
            found.name().to_owned(),
            "which packets it dropped when a stream exceeded the rate".to_owned(),
        ),
        Err(why) => (UNKNOWN.to_owned(), why.to_string()),
    };
    table.rows.push(vec!["queue discipline".to_owned(), name, String::new(), how]);
    row(&mut table, "random loss", &report.loss.rate);
    row(&mut table, "mean loss burst, packets", &report.loss.burst);
    let how = "packets that arrived after a later one".to_owned();
    table.rows.push(vec!["reordered".to_owned(), reordered(report), String::new(), how]);
    row(&mut table, "jitter", &report.jitter);
    if let Some(load) = &report.load {
        row(&mut table, "TCP goodput", &load.goodput);
        row(&mut table, "median RTT under load", &load.round_trip);
        row(&mut table, "round trips per minute under load", &load.responsiveness);
        table.rows.push(vec!["grade".to_owned(), graded(load), String::new(), String::new()]);
    }
    table
}

fn row<T: Copy + Display + Quantity>(table: &mut Table, name: &str, finding: &Finding<T>) {
    let [value, ends] = match finding.estimate() {
        Some(estimate) => {
            let ends = estimate.interval().map_or("-".to_owned(), |(low, high)| range(low, high));
            [short(estimate.value), ends]
        }
        None => [of(finding), String::new()],
    };
    table.rows.push(vec![name.to_owned(), value, ends, finding.how().to_owned()]);
}

fn expected(outlook: &Outlook) -> Markup {
    if let Some(why) = &outlook.unknown {
        return html! { p { "Not simulated: " (in_html(why)) "." } };
    }
    let heads = ["", "goodput", "mean RTT, ms", "lost, %"];
    let title = format!("Goodput, {}:", simulations(outlook));
    let mut table = Table::new(&title, &heads);
    let window = outlook.window_bytes.zip(outlook.window.as_ref());
    let named = outlook.congestion.iter().map(|e| (e.congestion.to_owned(), e));
    let held = window.map(|(window, e)| (held(e, window), e));
    for (name, e) in named.chain(held) {
        table.rows.push(vec![
            name,
            ranged(e, outlook),
            format!("{:.1}", e.rtt_s * 1e3),
            format!("{:.3}", e.loss_rate * 100.0),
        ]);
    }
    html! {
        (table_element(&table))
        @for note in notes(outlook) { p { (in_html(&note)) } }
    }
}

fn pictures(measured: &Measured) -> Vec<Plot> {
    let traces = &measured.traces;
    let mut plots = Vec::new();
    let mut shares = Plot::new(
        "RTT, idle and under load",
        Axis::new("RTT, ms"),
        Axis::new("share of echoes below").between(0.0, 1.0),
    );
    let mut over_time = Plot::new(
        "While TCP fills the path",
        Axis::new("time, s"),
        Axis::new("RTT of other packets, ms"),
    );
    let mut add = |name: &str, group: usize, points: &[DelayPoint]| {
        if !points.is_empty() {
            shares.curve(name, Origin::Recorded, group, distribution(points));
        }
    };
    add("idle", 0, &traces.idle);
    for (n, direction) in traces.directions.iter().enumerate() {
        add(&format!("TCP {}", direction.direction.name()), n + 1, &direction.load);
        if !direction.load.is_empty() {
            let name = direction.direction.name();
            over_time.curve(name, Origin::Recorded, n + 1, in_ms(&direction.load));
        }
    }
    plots.extend([shares, over_time].into_iter().filter(|plot| !plot.curves.is_empty()));
    for (direction, report) in traces.directions.iter().zip(&measured.report.directions) {
        if direction.overload.is_empty() {
            continue;
        }
        let mut plot = Plot::new(
            format!("The buffer fills, {}", direction.direction.name()),
            Axis::new("time, s"),
            Axis::new("queueing delay, ms"),
        );
        plot.curve("1.5 times the link", Origin::Recorded, 0, in_ms(&direction.overload));
        if !direction.slight.is_empty() {
            plot.curve("just above the link", Origin::Recorded, 1, in_ms(&direction.slight));
        }
        if let Some(depth) = report.buffer.delay.value() {
            plot.mark("full", 2, MarkPosition::Level(depth.as_secs_f64() * 1e3));
        }
        plots.push(plot);
    }
    plots
}

fn in_ms(points: &[DelayPoint]) -> Vec<(f64, f64)> {
    points.iter().map(|(at, delay)| (*at, delay * 1e3)).collect()
}

/// The cumulative distribution of the delays, in milliseconds.
fn distribution(points: &[DelayPoint]) -> Vec<(f64, f64)> {
    points.iter().map(|(_, delay)| delay * 1e3).collect::<Sorted>().distribution()
}
