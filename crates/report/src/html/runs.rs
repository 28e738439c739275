use maud::{Markup, html};

use crate::outcome::{DemoOutcome, VariantOutcome};

/// A collapsible section per run with the emulator's certificate and the controller's events.
pub fn section(outcome: &DemoOutcome) -> Markup {
    html! {
        section #certificates {
            h2 { "Can these numbers be trusted?" }
            p {
                "The path is emulated in real time. After each run the emulator certifies how accurately it followed its "
                "specification."
            }
            @for (index, c) in outcome.variants.iter().enumerate() { (fold(index, c)) }
        }
    }
}

fn fold(index: usize, c: &VariantOutcome) -> Markup {
    let (verdict, text) = match &c.certificate {
        None => ("no certificate", "This run ended before the emulator could certify it."),
        Some(k) if k.trust => ("trust", k.text.as_str()),
        Some(k) => ("do not trust", k.text.as_str()),
    };
    let hash = if c.hash_ok {
        "The file that arrived is the file that was sent (BLAKE3, read back from the disk)."
    } else {
        "The file did not arrive whole."
    };
    html! {
        details {
            summary class=(super::class(index, c)) { i {} (c.name()) ": " (verdict) }
            p { (hash) }
            pre { (text) }
            @if !c.series.events.is_empty() {
                p { "Actions of the controller:" }
                table.events {
                    tbody {
                        @for mark in &c.series.events {
                            tr { td { (format!("{:.3} s", mark.t.as_secs_f64())) } td { (mark.what) } }
                        }
                    }
                }
            }
        }
    }
}
