use maud::{Markup, PreEscaped, html};
use sweetspot_units::Duration;

use super::received::longest;
use crate::events::first_in_words;
use crate::outcome::{DemoOutcome, PathFacts, VariantOutcome};
use crate::series::SeriesEvent;
use crate::svg::{Band, LineRun, LinearScale, Panel, ReferenceLine, time_axis};

/// Four panels per variant, all with the same scales, so that variants can be compared visually.
pub fn section(outcome: &DemoOutcome) -> Markup {
    let end = longest(outcome);
    html! {
        section #runs {
            h2 { "Why" }
            p {
                "All frames share their scales. The shaded window is the sweet spot, from C T" sub { "m" }
                " (path full) to C T" sub { "m" } " + B (path and buffer full); dashed lines are what the path can carry, "
                "the round trip without a queue and the buffer's size. Small triangles below the window mark actions of the controller."
            }
            div.cards {
                @for (i, c) in outcome.variants.iter().enumerate() { (card(i, c, &outcome.path, end)) }
            }
        }
    }
}

const WIDTH: f64 = 360.0;
const LEFT: f64 = 38.0;
const FRAME_HEIGHT: f64 = 78.0;
/// Distance between the tops of two frames, including a title.
const PITCH: f64 = 104.0;
const FIRST_TOP: f64 = 22.0;

fn card(index: usize, c: &VariantOutcome, path: &PathFacts, end: f64) -> Markup {
    let note = c.failure.as_ref().map(|why| format!("Failed: {why}"));
    let note = note.or(c.distrust().map(|why| format!("Do not trust this run: {why}")));
    html! {
        figure class={ "card " (super::class(index, c)) } {
            figcaption { i {} (c.name()) }
            @if !c.series.t.is_empty() { (drawing(index, c, path, end)) }
            @if let Some(words) = note { p.distrust { (words) } }
        }
    }
}

fn drawing(index: usize, c: &VariantOutcome, path: &PathFacts, end: f64) -> Markup {
    let x = LinearScale::new((0.0, end), (LEFT, WIDTH - 8.0));
    let frames: [fn(&mut PanelFrame<'_>) -> String; 4] = [goodput, window, rtt, queue];
    let mut drawn = String::new();
    for (i, draw) in frames.iter().enumerate() {
        let top = FIRST_TOP + PITCH * i as f64;
        let class = super::class(index, c);
        drawn += &draw(&mut PanelFrame { c, path, x, at: (top + FRAME_HEIGHT, top), class });
    }
    let bottom = FIRST_TOP + PITCH * 3.0 + FRAME_HEIGHT;
    let height = bottom + 20.0;
    html! {
        svg data-run=(index) data-t={ (end) " " (LEFT) " " (x.range.1) } viewBox={ "0 0 " (WIDTH) " " (height) } role="img"
            aria-label={ (c.name()) ": goodput, window, round-trip time and queue over time" } {
            (PreEscaped(drawn))
            (PreEscaped(time_axis(&x, bottom)))
            (marks(c, &x))
            path.cursor d={ "M0 " (FIRST_TOP) "V" (bottom) } {}
        }
    }
}

/// Position of one of a variant's panels.
struct PanelFrame<'a> {
    c: &'a VariantOutcome,
    path: &'a PathFacts,
    x: LinearScale,
    /// The positions of bottom and top.
    at: (f64, f64),
    class: String,
}

impl PanelFrame<'_> {
    /// Lines over the receiver's sample times, with a gap wherever a value is missing.
    fn run(&self, values: impl Iterator<Item = Option<f64>>) -> Vec<LineRun> {
        let mut runs = vec![LineRun { class: self.class.clone(), points: Vec::new() }];
        for (t, value) in self.c.series.t.iter().zip(values) {
            match (value, runs.last_mut()) {
                (Some(value), Some(run)) => run.points.push((t.as_secs_f64(), value)),
                (None, Some(run)) if !run.points.is_empty() => {
                    runs.push(LineRun { class: self.class.clone(), points: Vec::new() });
                }
                _ => {}
            }
        }
        runs
    }

    /// RTTs in milliseconds. Consecutive measured RTTs are joined, although no probe was answered between
    /// them.
    fn measured(&self, rtts: &[Option<Duration>]) -> LineRun {
        let points = self.c.series.t.iter().zip(rtts);
        let points =
            points.filter_map(|(t, rtt)| Some((t.as_secs_f64(), (*rtt)?.as_secs_f64() * 1e3)));
        LineRun { class: self.class.clone(), points: points.collect() }
    }
}

fn goodput(f: &mut PanelFrame<'_>) -> String {
    let capacity = f.path.payload_capacity.as_f64() / 1e6;
    Panel {
        title: "Goodput, Mbit/s",
        key: "goodput",
        x: f.x,
        y: LinearScale::new((0.0, capacity * 1.15), f.at),
        band: None,
        rules: vec![ReferenceLine { at: capacity, label: &format!("path carries {capacity:.1}") }],
        runs: f.run(f.c.series.goodput.iter().map(|g| Some(g.as_f64() / 1e6))),
        filled: true,
    }
    .draw()
}

fn window(f: &mut PanelFrame<'_>) -> String {
    let (full, overflow) = (f.path.bdp.as_f64(), (f.path.bdp + f.path.buffer).as_f64());
    // 1.5 times the upper end of the sweet spot: beyond this, windows do not differ in effect.
    let top = overflow * 1.5;
    let (unit, title) =
        if top > 2e6 { (1e6, "Advertised window, MB") } else { (1e3, "Advertised window, kB") };
    Panel {
        title,
        key: "window",
        x: f.x,
        y: LinearScale::new((0.0, top / unit), f.at),
        band: Some(Band { span: (full / unit, overflow / unit), label: "sweet spot" }),
        rules: Vec::new(),
        runs: f.run(f.c.series.window.iter().map(|w| w.map(|w| w.as_f64() / unit))),
        filled: false,
    }
    .draw()
}

fn rtt(f: &mut PanelFrame<'_>) -> String {
    let min = f.path.rtt.as_secs_f64() * 1e3;
    let wait = f.path.longest_wait().as_secs_f64() * 1e3;
    Panel {
        title: "Round-trip time, ms",
        key: "rtt",
        x: f.x,
        y: LinearScale::new((min - wait * 0.25, min + wait * 1.35), f.at),
        band: None,
        rules: vec![
            ReferenceLine { at: min, label: &format!("T_m {min:.0}") },
            ReferenceLine { at: min + wait, label: &format!("buffer full {:.0}", min + wait) },
        ],
        runs: vec![f.measured(&f.c.series.rtt)],
        filled: false,
    }
    .draw()
}

fn queue(f: &mut PanelFrame<'_>) -> String {
    let buffer = f.path.buffer.as_f64() / 1e3;
    let queue = &f.c.series.queue;
    let points = queue.t.iter().zip(&queue.bytes);
    let points = points.map(|(t, b)| (t.as_secs_f64(), b.as_f64() / 1e3)).collect();
    Panel {
        title: "Bottleneck queue, kB",
        key: "queue",
        x: f.x,
        y: LinearScale::new((0.0, buffer * 1.15), f.at),
        band: None,
        rules: vec![ReferenceLine { at: buffer, label: &format!("buffer {buffer:.0}") }],
        runs: vec![LineRun { class: f.class.clone(), points }],
        filled: true,
    }
    .draw()
}

/// Marks for the controller's events below the window's frame, where they hide no curve; touching marks are merged.
fn marks(c: &VariantOutcome, x: &LinearScale) -> Markup {
    /// Width of a mark, in SVG units.
    const MARK: f64 = 7.0;
    let y = FIRST_TOP + PITCH + FRAME_HEIGHT + 1.0;
    let column = |event: &SeriesEvent| (x.at(event.t.as_secs_f64()) / MARK).floor();
    let words = |event: &SeriesEvent| format!("{:.2} s: {}", event.t.as_secs_f64(), event.what);
    let in_words =
        |events: &[SeriesEvent]| first_in_words(&events.iter().map(words).collect::<Vec<String>>());
    html! {
        @for events in c.series.events.chunk_by(|a, b| column(a) == column(b)) {
            path.mark d={ "M" ((column(&events[0]) + 0.5) * MARK) " " (y) "l3.5 6h-7z" } {
                title { (in_words(events)) }
            }
        }
    }
}
