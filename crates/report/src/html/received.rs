use maud::{Markup, PreEscaped, html};

use crate::headline::seconds;
use crate::outcome::DemoOutcome;
use crate::svg::{LineRun, LinearScale, Panel, time_axis};

/// The share of the file received over time, with all variants in one frame.
pub fn section(outcome: &DemoOutcome) -> Markup {
    html! {
        section #race {
            h2 { "The file on its way" }
            ul.legend {
                @for (i, c) in outcome.variants.iter().enumerate() {
                    li {
                        svg.sample viewBox="0 0 28 8" { path class={ "line " (super::class(i, c)) } d="M0 4h28" {} }
                        span { (c.name()) } " "
                        b { (c.duration.map_or_else(|| "did not arrive".to_owned(), seconds)) }
                    }
                }
            }
            // The picture is drawn in two sizes, so that letters keep theirs; CSS shows the one that
            // fits.
            (drawing(outcome, "wide", 1080.0, 300.0))
            (drawing(outcome, "narrow", 360.0, 260.0))
        }
    }
}

fn drawing(outcome: &DemoOutcome, class: &str, width: f64, height: f64) -> Markup {
    let x = LinearScale::new((0.0, longest(outcome)), (38.0, width - 14.0));
    let bottom = height - 22.0;
    let size = outcome.file.size.as_f64();
    let runs = outcome
        .variants
        .iter()
        .enumerate()
        .map(|(i, c)| {
            let arrived = c.series.received.iter().map(|r| r.as_f64() / size * 100.0);
            let points = c.series.t.iter().map(|t| t.as_secs_f64()).zip(arrived);
            let seen = c.series.t.last().copied().unwrap_or_default();
            // The last sample precedes the last byte.
            let end_point = c.duration.map(|end| (end.max(seen).as_secs_f64(), 100.0));
            LineRun {
                class: super::class(i, c),
                points: [(0.0, 0.0)].into_iter().chain(points).chain(end_point).collect(),
            }
        })
        .collect();
    let panel = Panel {
        title: "Arrived, % of the file",
        key: "arrived",
        x,
        y: LinearScale::new((0.0, 100.0), (bottom, 22.0)),
        band: None,
        rules: Vec::new(),
        runs,
        filled: false,
    };
    html! {
        svg class=(class) viewBox={ "0 0 " (width) " " (height) } role="img"
            aria-label="share of the file that had arrived, over time" {
            (PreEscaped(panel.draw()))
            (PreEscaped(time_axis(&x, bottom)))
        }
    }
}

/// The time at which the last variant ended, in seconds: the end of all time axes.
pub fn longest(outcome: &DemoOutcome) -> f64 {
    // The queue is sampled until the receiver has the last byte, slightly longer than the sender's
    // samples.
    let ends = outcome
        .variants
        .iter()
        .flat_map(|c| [c.series.t.last(), c.series.queue.t.last(), c.duration.as_ref()]);
    ends.flatten().map(|t| t.as_secs_f64()).fold(0.1, f64::max)
}
