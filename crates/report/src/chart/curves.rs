use std::fmt::Write;

use sweetspot_experiment::plot::{Axis, Curve, Origin, Plot, QuantileBox};

use super::axes::PlotFrame;
use super::marks;
use super::tone::{is_own, tone};
use crate::colour;
use crate::svg::{escape, far_value, number, thin_by};

/// Curves with more points than this get no dots.
const DOTTED: usize = 40;

/// Draws lines, dots and marks, and arrows for values beyond the frame.
pub fn draw(plot: &Plot, frame: &PlotFrame) -> String {
    let mut svg = String::new();
    // Sweetspot's own variant is drawn above all others.
    let (own, others): (Vec<&Curve>, Vec<&Curve>) = plot.curves.iter().partition(|c| is_own(c));
    for curve in others.into_iter().chain(own) {
        line(&mut svg, (plot, curve), frame);
    }
    for each in &plot.boxes {
        quantiles(&mut svg, each, frame);
    }
    svg += &marks::draw(plot, frame);
    beyond(&mut svg, plot, frame);
    svg
}

/// The CSS class of the line style for an engine.
pub fn style(origin: Origin) -> &'static str {
    match origin {
        Origin::Theory => "theory",
        Origin::Lab => "lab",
        Origin::Ns2 => "ns2",
        Origin::Sim | Origin::Published | Origin::Recorded => "sim",
    }
}

fn line(svg: &mut String, (plot, curve): (&Plot, &Curve), frame: &PlotFrame) {
    let inside: Vec<(f64, f64)> =
        curve.points.iter().copied().filter(|(x, y)| frame.x.holds(*x) && y.is_finite()).collect();
    whiskers(svg, curve, frame);
    let points = thin_by(&inside, |x| frame.x.at(x));
    let classes = format!("{} {}", style(curve.origin), tone(curve));
    if curve.origin != Origin::Ns2 && has_lines(plot) {
        let mut d = String::new();
        for (i, &(x, y)) in points.iter().enumerate() {
            let command = if i == 0 { 'M' } else { 'L' };
            let _ = write!(d, "{command}{:.1} {:.1}", frame.x.at(x), frame.y.clamped(y));
        }
        let _ = write!(svg, r#"<path class="line {classes}"{} d="{d}"/>"#, dashes(plot, curve));
    }
    if inside.len() <= DOTTED && is_marked(plot, curve) {
        for &(x, y) in &inside {
            let _ = write!(
                svg,
                r#"<path class="dot {classes}" d="{}"><title>{}: {} at {}</title></path>"#,
                marker(curve, (frame.x.at(x), frame.y.clamped(y))),
                escape(&format!("{}, {}", curve.label, curve.origin.name())),
                number((y * 100.0).round() / 100.0),
                escape(&place_name(plot, x)),
            );
        }
    }
}

/// The name at a position on the x axis, or the number if it has no name.
fn place_name(plot: &Plot, x: f64) -> String {
    let name = plot.x.names.get((x - 1.0).max(0.0) as usize);
    name.cloned().unwrap_or_else(|| number(x))
}

/// Whether lines join the points. Between named cases there are no values, so no lines.
pub fn has_lines(plot: &Plot) -> bool {
    plot.x.names.is_empty()
}

/// Whether each point of `curve` gets a mark, if there are few points.
fn is_marked(plot: &Plot, curve: &Curve) -> bool {
    curve.origin != Origin::Theory || !has_lines(plot)
}

/// A sample of the curve for the legend.
pub fn sample(plot: &Plot, curve: &Curve) -> String {
    let class = tone(curve);
    let line = match has_lines(plot) {
        true => format!(r#"<path class="line sim {class}"{} d="M2 0h17"/>"#, dashes(plot, curve)),
        false => String::new(),
    };
    if curve.points.len() > DOTTED || !is_marked(plot, curve) {
        return line;
    }
    format!(
        r#"{line}<path class="dot {} {class}" d="{}"/>"#,
        style(curve.origin),
        marker(curve, (10.5, 0.0))
    )
}

/// Dashes that distinguish the lines of several groups without colours. They are used for recorded lines, and for simulated lines
/// without marks if no other engine's lines are there. Otherwise, the style identifies the engine.
fn dashes(plot: &Plot, curve: &Curve) -> &'static str {
    let alone = || plot.curves.iter().all(|each| each.origin == Origin::Sim);
    let by_group = match curve.origin {
        Origin::Recorded => true,
        Origin::Sim => (curve.points.len() > DOTTED || is_own(curve)) && alone(),
        _ => false,
    };
    if !by_group {
        return "";
    }
    if is_own(curve) {
        // All variants of Sweetspot's own controller have the same colour, and the marks of few points may hide each other.
        let first = plot.curves.iter().find(|each| is_own(each)).map(|each| each.group);
        return if first == Some(curve.group) { "" } else { r#" stroke-dasharray="6 3""# };
    }
    match curve.group % 5 {
        0 => "",
        1 => r#" stroke-dasharray="7 2""#,
        2 => r#" stroke-dasharray="2 1.5""#,
        3 => r#" stroke-dasharray="8 2 2 2""#,
        _ => r#" stroke-dasharray="4 3""#,
    }
}

/// The outline of a point. Each group has its own shape, so that groups differ without colours; all shapes have about the same
/// area.
fn marker(curve: &Curve, (x, y): (f64, f64)) -> String {
    let r = if curve.origin == Origin::Ns2 { 3.2 } else { 2.8 };
    let (l, u) = (x - r, y - r);
    let d = 2.0 * r;
    match curve.group % 5 {
        0 => format!("M{l:.1} {y:.1}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0Z"),
        1 => format!("M{l:.1} {u:.1}h{d}v{d}h-{d}Z"),
        2 => format!("M{x:.1} {:.1}l{:.1} {:.1}h-{:.1}Z", y - 1.3 * r, 1.2 * r, d, 2.4 * r),
        3 => format!(
            "M{x:.1} {:.1}l{1:.1} {1:.1}l-{1:.1} {1:.1}l-{1:.1} -{1:.1}Z",
            y - 1.3 * r,
            1.3 * r
        ),
        _ => format!("M{x:.1} {:.1}l{:.1} -{:.1}h-{:.1}Z", y + 1.3 * r, 1.2 * r, d, 2.4 * r),
    }
}

/// Draws confidence intervals as vertical strokes.
fn whiskers(svg: &mut String, curve: &Curve, frame: &PlotFrame) {
    for (&(x, y), half) in curve.points.iter().zip(&curve.half_widths) {
        if frame.x.holds(x) {
            let _ = write!(
                svg,
                r#"<path class="whisker {class}" d="M{at:.1} {low:.1}V{high:.1}M{left:.1} {low:.1}h5M{left:.1} {high:.1}h5"/>"#,
                class = tone(curve),
                low = frame.y.clamped(y - half),
                high = frame.y.clamped(y + half),
                at = frame.x.at(x),
                left = frame.x.at(x) - 2.5,
            );
        }
    }
}

const BOX_HALF: f64 = 14.0;

fn quantiles(svg: &mut String, each: &QuantileBox, frame: &PlotFrame) {
    let [low, first, median, third, high] = each.quantiles.map(|value| frame.y.clamped(value));
    let at = frame.x.at(each.x);
    let numbers: Vec<String> = each.quantiles.map(|q| number((q * 100.0).round() / 100.0)).into();
    let _ = write!(
        svg,
        r#"<g class="quantiles {class}"><title>{words}</title><path class="whisker {class}" d="M{at:.1} {low:.1}V{first:.1}M{at:.1} {third:.1}V{high:.1}M{cap:.1} {low:.1}h10M{cap:.1} {high:.1}h10"/><path class="box {class}" d="M{left:.1} {third:.1}h{wide}V{first:.1}h-{wide}Z"/><path class="median {class}" d="M{left:.1} {median:.1}h{wide}"/></g>"#,
        class = colour::class(each.group),
        words = escape(&format!(
            "{}: 5, 25, 50, 75 and 95 % of {} values are below {}",
            each.label,
            each.count,
            numbers.join(", ")
        )),
        cap = at - 5.0,
        left = at - BOX_HALF,
        wide = 2.0 * BOX_HALF,
    );
}

/// Notes how far values extend beyond the frame.
fn beyond(svg: &mut String, plot: &Plot, frame: &PlotFrame) {
    let points = || plot.curves.iter().flat_map(|curve| curve.points.iter().copied());
    let right = frame.x.at(frame.x.domain.1) - 4.0;
    let mut write_label = |y: f64, arrow: char, (value, axis): (f64, &Axis)| {
        let text = far_value(value, axis.unit().trim_start());
        let _ = write!(
            svg,
            r#"<text class="outside" x="{right:.1}" y="{y:.1}" text-anchor="end">{arrow} to {text}</text>"#
        );
    };
    let highest = points().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
    if highest > frame.y.domain.1 {
        // Beside the name of the axis, where no curve is.
        write_label(frame.y.at(frame.y.domain.1) - 8.0, '▲', (highest, &plot.y));
    }
    let lowest = points().map(|p| p.1).fold(f64::INFINITY, f64::min);
    if lowest < frame.y.domain.0 {
        write_label(frame.y.at(frame.y.domain.0) - 5.0, '▼', (lowest, &plot.y));
    }
    let furthest = points().map(|p| p.0).fold(f64::NEG_INFINITY, f64::max);
    if furthest > frame.x.domain.1 {
        write_label(frame.y.at(frame.y.domain.0) - 16.0, '▶', (furthest, &plot.x));
    }
}
