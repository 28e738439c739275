use std::fmt::Write;

use sweetspot_experiment::plot::{Curve, Origin, Plot};

use super::axes::CHAR_WIDTH;
use super::curves::{has_lines, sample, style};
use super::marks::is_named_level;
use crate::colour;
use crate::svg::typeset;

/// A legend and its height.
pub struct Legend {
    /// The SVG elements.
    pub svg: String,
    /// Height in SVG units.
    pub height: f64,
}

const LEGEND_LINE_HEIGHT: f64 = 16.0;
const SAMPLE: f64 = 24.0;
const GAP: f64 = 12.0;

/// A sample of a line, and its label.
struct LegendItem {
    sample: String,
    words: String,
}

/// The legend of `plot`, downwards from `top`: first the colours, then the styles. With `named`, the curves already have
/// their names at their ends.
pub fn draw(plot: &Plot, named: bool, (top, width): (f64, f64)) -> Legend {
    let mut x = 6.0;
    let mut y = top + 14.0;
    let mut svg = String::new();
    let curves = if named { Vec::new() } else { named_curves(plot) };
    for row in [colours(plot, &curves), styles(plot)] {
        for item in row {
            let wide = SAMPLE + item.words.chars().count() as f64 * CHAR_WIDTH + GAP;
            if x > 6.0 && x + wide - GAP > width {
                x = 6.0;
                y += LEGEND_LINE_HEIGHT;
            }
            let _ = write!(
                svg,
                r#"<g transform="translate({x:.1} {:.1})">{}<text class="num" x="{SAMPLE}" y="4">{}</text></g>"#,
                y - 4.0,
                item.sample,
                typeset(&item.words),
            );
            x += wide;
        }
        if x > 6.0 {
            x = 6.0;
            y += LEGEND_LINE_HEIGHT;
        }
    }
    Legend { svg, height: y - top - 8.0 }
}

/// The first curve of each colour and name.
pub fn named_curves(plot: &Plot) -> Vec<&Curve> {
    let mut seen: Vec<&Curve> = Vec::new();
    for curve in &plot.curves {
        if !seen.iter().any(|known| (known.group, &known.label) == (curve.group, &curve.label)) {
            seen.push(curve);
        }
    }
    seen
}

/// One entry for each of `curves`, and one for each group of marks without a curve.
fn colours(plot: &Plot, curves: &[&Curve]) -> Vec<LegendItem> {
    let item =
        |curve: &Curve| LegendItem { sample: sample(plot, curve), words: curve.label.clone() };
    let mut items: Vec<LegendItem> = curves.iter().map(|curve| item(curve)).collect();
    // Marks in a colour that no curve explains.
    let explained = |group| plot.curves.iter().any(|curve| curve.group == group);
    let lonely =
        plot.marks.iter().filter(|mark| !explained(mark.group) && !is_named_level(plot, mark));
    let mut shared: Vec<(usize, String)> = Vec::new();
    for mark in lonely {
        match shared.iter_mut().find(|(group, _)| *group == mark.group) {
            Some((_, words)) => *words = in_common(words, &mark.label),
            None => shared.push((mark.group, mark.label.clone())),
        }
    }
    // The entry for all published values has the same words.
    shared.retain(|(_, words)| words != PUBLISHED);
    items.extend(shared.into_iter().map(|(group, words)| LegendItem {
        sample: format!(
            r#"<path class="mark {}" d="M10 -5l5 5l-5 5l-5 -5Z"/>"#,
            colour::class(group)
        ),
        words,
    }));
    items
}

const PUBLISHED: &str = "published";

/// The leading comma-separated parts that both have in common.
fn in_common(one: &str, other: &str) -> String {
    let both = one.split(", ").zip(other.split(", "));
    let same: Vec<&str> = both.take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    same.join(", ")
}

/// One entry per engine, and one for published values. None if one engine drew everything, so that there is only one style.
/// The label of a recording is enough.
fn styles(plot: &Plot) -> Vec<LegendItem> {
    let mut origins: Vec<Origin> = Vec::new();
    for curve in &plot.curves {
        if curve.origin != Origin::Recorded && !origins.contains(&curve.origin) {
            origins.push(curve.origin);
        }
    }
    let published = plot.marks.iter().any(|mark| mark.label.starts_with(PUBLISHED));
    if origins.len() + usize::from(published) < 2 {
        return Vec::new();
    }
    let of = |origin: Origin| match origin {
        origin if origin == Origin::Ns2 || !has_lines(plot) => {
            format!(r#"<circle class="dot {} ink" cx="10" cy="0" r="3"/>"#, style(origin))
        }
        origin => format!(r#"<path class="line {} ink" d="M2 0h17"/>"#, style(origin)),
    };
    let mut items: Vec<LegendItem> = origins
        .iter()
        .map(|origin| LegendItem { sample: of(*origin), words: origin.name().to_owned() })
        .collect();
    if published {
        items.push(LegendItem {
            sample: r#"<path class="mark ink" d="M10 -5l5 5l-5 5l-5 -5Z"/>"#.to_owned(),
            words: PUBLISHED.to_owned(),
        });
    }
    items
}
