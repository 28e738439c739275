//! The self-contained page: one file, no network, readable on a phone and in dark mode.

mod charts;
mod pointer;
mod received;
mod runs;
mod table;

use crate::colour;
use crate::headline::headline;
use crate::outcome::DemoOutcome;
use crate::page::in_html;
use crate::svg::escape;

/// The whole page.
pub fn page(outcome: &DemoOutcome) -> String {
    let path = &outcome.path;
    let sentences = headline(outcome);
    let title = format!("{} over {}, {}", outcome.file.size, path.rate, path.rtt);
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sweetspot: {title}</title>
<style>{palette}{style}</style>
</head>
<body>
<main>
<header>
<p class="brand">sweetspot demo</p>
<h1>{first}</h1>
<p>{others}</p>
<p class="path">{path_words}</p>
</header>
{race}
{table}
{charts}
{runs}
{about}
</main>
<script type="application/json" id="samples">{samples}</script>
<script>{script}</script>
</body>
</html>
"#,
        title = escape(&title),
        palette = colour::style(),
        style = include_str!("style.css"),
        first = escape(&sentences[0]),
        others = escape(&sentences[1..].join(" ")),
        path_words = in_html(&path_in_words(outcome)),
        race = received::section(outcome),
        table = table::section(outcome),
        charts = charts::section(outcome),
        runs = runs::section(outcome),
        about = about(outcome),
        samples = pointer::samples(outcome),
        script = include_str!("pointer.js"),
    )
}

fn path_in_words(outcome: &DemoOutcome) -> String {
    let path = &outcome.path;
    format!(
        "The path: {} with {} of round trip, so {} are in flight when it is full (C T_m, one BDP); \
         its bottleneck buffers {} ({:.2} BDP). Every transfer ran alone on this machine's own kernel TCP.",
        path.rate,
        path.rtt,
        path.bdp,
        path.buffer,
        path.buffer.as_f64() / path.bdp.as_f64(),
    )
}

fn about(outcome: &DemoOutcome) -> String {
    let content = match outcome.file.seed {
        Some(seed) => format!("incompressible, from seed {seed}"),
        None => "the user's own".to_owned(),
    };
    format!(
        r#"<section id="about">
<h2>Do it again</h2>
<pre>{command}</pre>
<dl>
<dt>Path</dt><dd><code>{spec}</code></dd>
<dt>File</dt><dd>{size}, {content}</dd>
<dt>Kernel</dt><dd>{kernel}</dd>
<dt>Machine</dt><dd>{machine}</dd>
<dt>Date</dt><dd>{date}</dd>
<dt>Sweetspot</dt><dd>{version}</dd>
</dl>
<p class="note">Curves are thinned: of all samples in one pixel's width the first, lowest, highest and last
are drawn, so no peak is lost. Values beyond a frame are drawn at its edge, which says how far they went.
Goodput is counted over the half second before each point. Every sample stands in outcome.json.</p>
</section>"#,
        command = escape(&outcome.command),
        spec = escape(&outcome.path.spec),
        size = outcome.file.size,
        kernel = escape(&outcome.kernel),
        machine = escape(&outcome.machine),
        date = escape(&outcome.date),
        version = escape(&outcome.version),
    )
}
