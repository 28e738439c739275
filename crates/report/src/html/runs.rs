use crate::colour;
use crate::outcome::{DemoOutcome, VariantOutcome};
use crate::svg::escape;

/// A collapsible section per run with the emulator's certificate and the controller's events.
pub fn section(outcome: &DemoOutcome) -> String {
    let folds: String = outcome.variants.iter().enumerate().map(fold).collect();
    format!(
        r#"<section id="certificates">
<h2>Can this be believed?</h2>
<p>The path is emulated in real time. After each run the emulator certifies how true it was to its
specification.</p>
{folds}
</section>"#
    )
}

fn fold((index, c): (usize, &VariantOutcome)) -> String {
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
    let mut events = String::new();
    for mark in &c.series.events {
        let (t, what) = (mark.t.as_secs_f64(), escape(&mark.what));
        events += &format!("<tr><td>{t:.3} s</td><td>{what}</td></tr>");
    }
    if !events.is_empty() {
        events = format!(
            r#"<p>What the controller did:</p><table class="events"><tbody>{events}</tbody></table>"#
        );
    }
    format!(
        r#"<details><summary class="{class}"><i></i>{name}: {verdict}</summary><p>{hash}</p><pre>{text}</pre>{events}</details>"#,
        class = colour::class(index),
        name = escape(&c.name()),
        text = escape(text),
    )
}
