//! The self-contained page: one file, no network, readable on a phone and in dark mode.

mod charts;
mod pointer;
mod received;
mod runs;
mod table;

use maud::{Markup, PreEscaped, html};

use crate::colour;
use crate::headline::headline;
use crate::outcome::{DemoOutcome, VariantOutcome};
use crate::page::{command, in_html, whole};

/// The whole HTML page.
pub fn page(outcome: &DemoOutcome) -> String {
    let path = &outcome.path;
    let sentences = headline(outcome);
    let title = format!("Sweetspot: {} over {}, {}", outcome.file.size, path.rate, path.rtt);
    let body = html! {
        main {
            header {
                p.brand { "sweetspot demo" }
                h1 { (sentences[0]) }
                p { (sentences[1..].join(" ")) }
                p.path { (in_html(&path_in_words(outcome))) }
            }
            (received::section(outcome))
            (table::section(outcome))
            (charts::section(outcome))
            (runs::section(outcome))
            (about(outcome))
        }
        script type="application/json" id="samples" { (PreEscaped(pointer::samples(outcome))) }
        script { (PreEscaped(include_str!("pointer.js"))) }
    };
    whole(&title, "light dark", colour::style() + include_str!("style.css"), &body)
}

/// The CSS classes for a variant's colour.
fn class(index: usize, variant: &VariantOutcome) -> String {
    let ours = if colour::is_own(&variant.sizing) { " ours" } else { "" };
    colour::class(index) + ours
}

fn path_in_words(outcome: &DemoOutcome) -> String {
    let path = &outcome.path;
    format!(
        "The path: {} with an RTT of {}, so {} are in flight when it is full (C T_m, one BDP); \
         its bottleneck buffers {} ({:.2} BDP). Every transfer ran alone on this machine's own kernel TCP.",
        path.rate,
        path.rtt,
        path.bdp,
        path.buffer,
        path.buffer.as_f64() / path.bdp.as_f64(),
    )
}

fn about(outcome: &DemoOutcome) -> Markup {
    let content = match outcome.file.seed {
        Some(seed) => format!("incompressible, from seed {seed}"),
        None => "from the user".to_owned(),
    };
    html! {
        section #about {
            h2 { "Reproduce" }
            pre { code { (command(&outcome.command)) } }
            dl {
                dt { "Path" } dd { code { (command(&outcome.path.spec)) } }
                dt { "File" } dd { (outcome.file.size) ", " (content) }
                dt { "Kernel" } dd { (outcome.kernel) }
                dt { "Machine" } dd { (outcome.machine) }
                dt { "Date" } dd { (outcome.date) }
                dt { "Sweetspot" } dd { (outcome.version) }
            }
            p.note {
                "Curves are thinned: of all samples in one pixel's width the first, lowest, highest and last "
                "are drawn, so no peak is lost. Values beyond a frame are drawn at its edge, with their size above it. "
                "Goodput is the mean over the half second before each point. outcome.json has every sample."
            }
        }
    }
}
