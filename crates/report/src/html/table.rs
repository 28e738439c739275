use sweetspot_units::{Duration, grouped};

use crate::colour;
use crate::outcome::{DemoOutcome, VariantOutcome};
use crate::svg::escape;

const HEADINGS: [&str; 8] = [
    "Goodput, Mbit/s",
    "of the path",
    "Segments retransmitted",
    "Retransmitted, %",
    "Dropped at the bottleneck",
    "RTT median, ms",
    "RTT p99, ms",
    "90 % of the path after, s",
];

/// The numbers. On a phone each row becomes a card with its headings beside the cells.
pub fn section(outcome: &DemoOutcome) -> String {
    let head: String = HEADINGS.iter().map(|h| format!("<th scope=\"col\">{h}</th>")).collect();
    let rows: String = outcome.variants.iter().enumerate().map(row).collect();
    format!(
        r#"<section id="numbers">
<h2>The numbers</h2>
<table><thead><tr><th scope="col">Transfer</th>{head}</tr></thead><tbody>{rows}</tbody></table>
</section>"#
    )
}

fn row((index, c): (usize, &VariantOutcome)) -> String {
    let name = format!(
        r#"<th scope="row" class="{}"><i></i>{}</th>"#,
        colour::class(index),
        escape(&c.name())
    );
    if let Some(why) = &c.failure {
        let why = escape(why);
        return format!(r#"<tr>{name}<td class="bad" colspan="8">failed: {why}</td></tr>"#);
    }
    let cells: String = HEADINGS
        .iter()
        .zip(cells(c))
        .map(|(heading, cell)| format!(r#"<td data-label="{heading}">{cell}</td>"#))
        .collect();
    let distrust = c.distrust().map_or(String::new(), |why| {
        let why = escape(&why);
        format!(
            r#"<tr class="distrust"><td colspan="9">Do not trust the row above: {why}</td></tr>"#
        )
    });
    format!("<tr>{name}{cells}</tr>{distrust}")
}

fn cells(c: &VariantOutcome) -> [String; 8] {
    let milliseconds = |t: Duration| format!("{:.1}", t.as_secs_f64() * 1e3);
    [
        show(c.goodput, |rate| format!("{:.1}", rate.as_f64() / 1e6)),
        show(c.share_of_capacity, |share| format!("{:.1} %", share * 100.0)),
        show(c.retransmitted_segments, grouped),
        show(c.retransmitted_share(), |share| format!("{:.3}", share * 100.0)),
        show(c.bottleneck_drops, grouped),
        show(c.rtt_median, milliseconds),
        show(c.rtt_p99, milliseconds),
        c.time_to_90_percent
            .map_or_else(|| "never".to_owned(), |t| format!("{:.1}", t.as_secs_f64())),
    ]
}

fn show<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), text)
}
