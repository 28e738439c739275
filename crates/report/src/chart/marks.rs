use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use sweetspot_experiment::plot::{Curve, MarkPosition, Plot, PublishedMark};

use super::axes::{CHAR_WIDTH, PlotFrame};
use super::tone::{names_own, tone};
use crate::colour;
use crate::events::first_in_words;
use crate::svg::{escape, number, typeset};

/// Draws published numbers, named levels, and the times of events.
pub fn draw(plot: &Plot, frame: &PlotFrame) -> String {
    let mut svg = String::new();
    for each in &plot.marks {
        mark(&mut svg, each, (plot, frame));
    }
    // Above the lines of all levels.
    let mut named = Vec::new();
    for each in plot.marks.iter().filter(|mark| is_named_level(plot, mark)) {
        name(&mut svg, (plot, each), frame, &mut named);
    }
    moments(&mut svg, plot, frame);
    svg
}

/// Whether a mark is a level with its name on its line, because it belongs to no curve.
pub fn is_named_level(plot: &Plot, mark: &PublishedMark) -> bool {
    let alone = plot.curves.iter().all(|curve| curve.group != mark.group);
    alone && matches!(mark.place, MarkPosition::Level(_))
}

/// Height of a level's name.
const NAME_HEIGHT: f64 = 13.0;
/// Distance between samples of a curve that a name may hide, in SVG units.
const STEP: f64 = 4.0;

/// Places along a level that its name may begin at, besides its left end.
const PLACES: u32 = 12;

/// The name of a level, above its line or below it: where it hides least of the curves and of the names before it, which begin
/// at `named`, have a width, and are above or below their lines. An end of the line is better than a place between.
fn name(
    svg: &mut String,
    (plot, mark): (&Plot, &PublishedMark),
    frame: &PlotFrame,
    named: &mut Vec<(f64, f64, f64)>,
) {
    let MarkPosition::Level(y) = mark.place else { return };
    let line = frame.y.clamped(y);
    let width = mark.label.chars().count() as f64 * CHAR_WIDTH;
    let (top, bottom) = (frame.y.at(frame.y.domain.1), frame.y.at(frame.y.domain.0));
    let levels = plot.marks.iter().filter_map(|other| match other.place {
        MarkPosition::Level(y) if other != mark => Some(frame.y.clamped(y)),
        _ => None,
    });
    let levels: Vec<f64> = levels.collect();
    let hidden = |(left, above): (f64, f64)| {
        let inside = |y: &f64| (above..above + NAME_HEIGHT).contains(y);
        let across = (0..).map(|n| left + f64::from(n) * STEP).take_while(|x| *x < left + width);
        let curves =
            across.flat_map(|x| plot.curves.iter().filter_map(move |c| extent(c, frame, x)));
        let touches = |(low, high): &(f64, f64)| *low < above + NAME_HEIGHT && above < *high;
        let crossed = levels.iter().filter(|y| inside(y)).count() as f64 * width / STEP;
        let overlaps = |other: &&(f64, f64, f64)| {
            (other.1 - above).abs() < NAME_HEIGHT
                && other.0 < left + width
                && left < other.0 + other.2
        };
        let names = named.iter().filter(overlaps).count() as f64 * width / STEP;
        curves.filter(touches).count() as f64 + crossed + names
    };
    let (left, right) = (frame.left() + 4.0, frame.right() - 8.0 - width);
    let (above, below) = (line - NAME_HEIGHT, line);
    let top = top + moments_height(plot);
    let fits = |above: f64| above >= top && above + NAME_HEIGHT <= bottom;
    // The lower right corner is reserved for notes on values beyond the frame.
    let free = |above: f64| fits(above) && fits(above + NAME_HEIGHT);
    let between = (1..PLACES).map(|n| left + (right - left) * f64::from(n) / f64::from(PLACES));
    let places = [left, right].into_iter().chain(between).flat_map(|x| [(x, above), (x, below)]);
    let best = places
        .filter(|place| if place.0 == left { fits(place.1) } else { free(place.1) })
        .map(|place| (hidden(place), place))
        .reduce(|best, other| if other.0 < best.0 { other } else { best });
    let (x, above_it) = best.map_or((left, above), |(_, place)| place);
    named.push((x, above_it, width));
    let _ = write!(
        svg,
        r#"<text class="named" x="{x:.1}" y="{:.1}">{}</text>"#,
        if above_it == below { line + 11.5 } else { line - 5.0 },
        typeset(&mark.label),
    );
}

/// The highest and lowest point of `curve` from `x` on, over a step, in SVG units. It may rise or fall steeply between two samples.
fn extent(curve: &Curve, frame: &PlotFrame, x: f64) -> Option<(f64, f64)> {
    let first = curve.points.partition_point(|point| frame.x.at(point.0) < x);
    let end = curve.points.partition_point(|point| frame.x.at(point.0) < x + STEP);
    let ends = [x, x + STEP].into_iter().filter_map(|x| height(curve, frame, x));
    let within = curve.points[first..end].iter().map(|point| frame.y.clamped(point.1));
    ends.chain(within).map(|y| (y, y)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// The height of `curve` at `x`, in SVG units.
fn height(curve: &Curve, frame: &PlotFrame, x: f64) -> Option<f64> {
    let after = curve.points.partition_point(|point| frame.x.at(point.0) < x);
    let (before, after) = (curve.points.get(after.checked_sub(1)?)?, curve.points.get(after)?);
    let (from, to) = (frame.x.at(before.0), frame.x.at(after.0));
    let (low, high) = (frame.y.clamped(before.1), frame.y.clamped(after.1));
    let share = if to > from { (x - from) / (to - from) } else { 0.0 };
    Some(low + share * (high - low))
}

/// Height of an event's tick in SVG units.
const TICK: f64 = 6.0;

/// The height of the rows of ticks for events.
fn moments_height(plot: &Plot) -> f64 {
    let of_moment =
        |mark: &PublishedMark| matches!(mark.place, MarkPosition::Moment(_)).then_some(mark.group);
    let rows: BTreeSet<usize> = plot.marks.iter().filter_map(of_moment).collect();
    rows.len() as f64 * (TICK + 1.0)
}

/// Draws events as ticks along the top edge, one row per group, so that thousands of them hide no curve.
fn moments(svg: &mut String, plot: &Plot, frame: &PlotFrame) {
    let mut rows: BTreeMap<usize, BTreeMap<i64, Vec<&str>>> = BTreeMap::new();
    for each in &plot.marks {
        if let MarkPosition::Moment(x) = each.place {
            let column = frame.x.clamped(x).round() as i64;
            rows.entry(each.group).or_default().entry(column).or_default().push(&each.label);
        }
    }
    let class = |group: usize| {
        let curve = plot.curves.iter().find(|curve| curve.group == group);
        curve.map_or_else(|| colour::class(group), tone)
    };
    let top = frame.y.at(frame.y.domain.1);
    for (row, (group, columns)) in rows.iter().enumerate() {
        let y = top + row as f64 * (TICK + 1.0);
        for (x, labels) in columns {
            let _ = write!(
                svg,
                r#"<path class="moment {}" d="M{x} {y:.1}v{TICK}"><title>{}</title></path>"#,
                class(*group),
                escape(&first_in_words(labels)),
            );
        }
    }
}

fn mark(svg: &mut String, mark: &PublishedMark, (plot, frame): (&Plot, &PlotFrame)) {
    // A level stands for a curve, and Sweetspot's own one is as bold.
    let class = match is_named_level(plot, mark) && names_own(&mark.label) {
        true => "line own".to_owned(),
        false => colour::class(mark.group),
    };
    let title = |numbers: String| format!("<title>{}: {numbers}</title>", escape(&mark.label));
    let (left, right) = (frame.x.at(frame.x.domain.0), frame.x.at(frame.x.domain.1));
    let (bottom, top) = (frame.y.at(frame.y.domain.0), frame.y.at(frame.y.domain.1));
    let _ = match mark.place {
        MarkPosition::Point(x, y) => write!(
            svg,
            r#"<path class="mark {class}" d="M{:.1} {:.1}l5 5l-5 5l-5 -5Z">{}</path>"#,
            frame.x.clamped(x),
            frame.y.clamped(y) - 5.0,
            title(format!("{} at {}", number(y), number(x))),
        ),
        MarkPosition::Level(y) => write!(
            svg,
            r#"<path class="level {class}" d="M{left:.1} {0:.1}H{right:.1}"/><path class="mark {class}" d="M{right:.1} {1:.1}l5 5l-5 5l-5 -5Z">{2}</path>"#,
            frame.y.clamped(y),
            frame.y.clamped(y) - 5.0,
            title(number(y)),
        ),
        MarkPosition::Span(from, to) => write!(
            svg,
            r#"<path class="level {class}" d="M{0:.1} {bottom:.1}V{top:.1}"/><path class="mark {class}" d="M{0:.1} {top:.1}l5 5l-5 5l-5 -5Z">{1}</path>"#,
            f64::midpoint(frame.x.clamped(from), frame.x.clamped(to)),
            title(number(from)),
        ),
        MarkPosition::Moment(_) => Ok(()),
    };
}
