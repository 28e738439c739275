use maud::{Markup, html};
use sweetspot_units::grouped;

use crate::headline::milliseconds;
use crate::outcome::{DemoOutcome, VariantOutcome};

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

/// The table of results. On a phone, each row becomes a card with its headings beside the cells.
pub fn section(outcome: &DemoOutcome) -> Markup {
    html! {
        section #numbers {
            h2 { "The numbers" }
            table {
                thead { tr { th scope="col" { "Transfer" } @for heading in HEADINGS { th scope="col" { (heading) } } } }
                tbody { @for (index, c) in outcome.variants.iter().enumerate() { (row(index, c)) } }
            }
        }
    }
}

fn row(index: usize, c: &VariantOutcome) -> Markup {
    html! {
        tr {
            th scope="row" class=(super::class(index, c)) { i {} (c.name()) }
            @if let Some(why) = &c.failure {
                td.bad colspan="8" { "failed: " (why) }
            } @else {
                @for (heading, cell) in HEADINGS.iter().zip(cells(c)) { td data-label=(heading) { (cell) } }
            }
        }
        @if c.failure.is_none() && let Some(why) = c.distrust() {
            tr.distrust { td colspan="9" { "Do not trust the row above: " (why) } }
        }
    }
}

fn cells(c: &VariantOutcome) -> [String; 8] {
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
