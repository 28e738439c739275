use std::fmt::Write;

use sweetspot_experiment::plot::{Axis, MarkPosition, Plot};

use super::scale::PlotScale;
use crate::svg::{tick_words, typeset};

/// Width of an average letter at a font size of 11 units, slightly generous.
pub const CHAR_WIDTH: f64 = 5.9;

/// The frame of a plot: both scales and their positions.
pub struct PlotFrame {
    /// The scale of the horizontal axis.
    pub x: PlotScale,
    /// The scale of the vertical axis.
    pub y: PlotScale,
    left: f64,
    right: f64,
    bottom: f64,
    top: f64,
}

impl PlotFrame {
    /// The frame that shows all of `plot`, between `left` and `right` and between `bottom` and `top`.
    pub fn of(plot: &Plot, (left, right): (f64, f64), (bottom, top): (f64, f64)) -> PlotFrame {
        let curves = || plot.curves.iter().flat_map(|curve| curve.points.iter().copied());
        let mut xs: Vec<f64> = curves().map(|point| point.0).collect();
        let mut ys: Vec<f64> = curves().map(|point| point.1).collect();
        // The frame extends to whole intervals. If a quantity is never negative, such as a rate or a time, its intervals
        // are cut at zero.
        let min = if ys.iter().all(|y| *y >= 0.0) { 0.0 } else { f64::NEG_INFINITY };
        for curve in &plot.curves {
            let both = curve.points.iter().zip(&curve.half_widths);
            ys.extend(both.flat_map(|(&(_, y), half)| [(y - half).max(min), y + half]));
        }
        ys.extend(plot.boxes.iter().flat_map(|each| each.quantiles));
        for mark in &plot.marks {
            match mark.place {
                MarkPosition::Point(x, y) => {
                    xs.push(x);
                    ys.push(y);
                }
                MarkPosition::Level(y) => ys.push(y),
                MarkPosition::Span(from, to) => xs.extend([from, to]),
                MarkPosition::Moment(x) => xs.push(x),
            }
        }
        let x = PlotScale::new(domain(&plot.x, &xs, 1.0), (left, right), plot.x.logarithmic);
        // A margin above the highest point.
        let y = PlotScale::new(domain(&plot.y, &ys, 1.06), (bottom, top), plot.y.logarithmic);
        PlotFrame { x, y, left, right, bottom, top }
    }

    /// The left edge.
    pub fn left(&self) -> f64 {
        self.left
    }

    /// The right edge.
    pub fn right(&self) -> f64 {
        self.right
    }

    /// Draws the frame, its grid, its ticks and the name of the horizontal axis.
    pub fn draw(&self, plot: &Plot) -> String {
        let PlotFrame { left, right, bottom, top, .. } = *self;
        let mut svg = String::new();
        if let Some((name, from, to)) = &plot.band {
            let (x0, x1) = (self.x.clamped(*from), self.x.clamped(*to));
            // A name that would extend beyond the frame ends at its right edge.
            let words = name.chars().count() as f64 * CHAR_WIDTH;
            let (at, anchor) = if x0 + words > right { (right, "end") } else { (x0, "start") };
            let begins = if x0 + words > right { right - words } else { x0 };
            let y = self.name_of_band(plot, (begins, begins + words));
            let _ = write!(
                svg,
                r#"<rect class="band" x="{x0:.1}" y="{top}" width="{:.1}" height="{}"/><text class="num" x="{at:.1}" y="{:.1}" text-anchor="{anchor}"> {} </text>"#,
                (x1 - x0).max(1.0),
                bottom - top,
                y,
                typeset(name),
            );
        }
        let values = self.y.ticks(5);
        for (&value, words) in values.iter().zip(tick_words(&values)) {
            let y = self.y.at(value);
            let _ = write!(
                svg,
                r#"<path class="grid" d="M{left} {y:.1}H{right}"/><text class="num" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                left - 5.0,
                y + 3.5,
                words,
            );
        }
        for (value, name) in ticks(&plot.x, &self.x) {
            let x = self.x.at(value);
            let _ = write!(
                svg,
                r#"<path class="tick" d="M{x:.1} {bottom}v4"/><text class="num" x="{x:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
                bottom + 15.0,
                typeset(&name),
            );
        }
        let _ = write!(
            svg,
            r#"<rect class="frame" x="{left}" y="{top}" width="{:.1}" height="{:.1}"/><text class="num" x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            right - left,
            bottom - top,
            (left + right) / 2.0,
            bottom + 30.0,
            typeset(&plot.x.label),
        );
        svg
    }
}

impl PlotFrame {
    /// The height of a band's name, for a band with a name from `from` to `to`: at the bottom, or at the top if fewer
    /// points are there.
    fn name_of_band(&self, plot: &Plot, (from, to): (f64, f64)) -> f64 {
        /// Height of a line of text.
        const HEIGHT: f64 = 15.0;
        let points = || plot.curves.iter().flat_map(|curve| curve.points.iter());
        let beside = points().filter(|(x, _)| (from..to).contains(&self.x.at(*x)));
        let heights: Vec<f64> = beside.map(|(_, y)| self.y.clamped(*y)).collect();
        let low = heights.iter().filter(|y| **y > self.bottom - HEIGHT).count();
        let high = heights.iter().filter(|y| **y < self.top + HEIGHT).count();
        if high < low { self.top + 11.0 } else { self.bottom - 5.0 }
    }
}

/// The values labelled on the x axis, and their labels.
fn ticks(axis: &Axis, scale: &PlotScale) -> Vec<(f64, String)> {
    if axis.names.is_empty() {
        let values = scale.ticks(6);
        let words = tick_words(&values);
        return values.into_iter().zip(words).collect();
    }
    (1u32..).map(f64::from).zip(axis.names.iter().cloned()).collect()
}

/// The range of an axis: its own, or the range of `values`, including zero if the axis is linear.
fn domain(axis: &Axis, values: &[f64], room: f64) -> (f64, f64) {
    if let Some(domain) = axis.domain {
        return domain;
    }
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let high = finite().fold(f64::NEG_INFINITY, f64::max);
    if axis.logarithmic {
        let low = finite().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        return if low < high { (low, high) } else { (0.1, 10.0) };
    }
    let low = finite().fold(0.0, f64::min);
    if high > low { (low, high * room) } else { (low, low + 1.0) }
}
