use std::fmt::Write;

use super::axis::{far_value, number};
use super::thin::thin;
use super::{LinearScale, escape, typeset};

/// A chart of one quantity over time, with a target band and reference lines.
#[derive(Debug)]
pub struct Panel<'a> {
    /// The quantity and its unit, e.g. "Goodput, Mbit/s".
    pub title: &'a str,
    /// An identifier for screen readers and scripts, e.g. `goodput`.
    pub key: &'a str,
    /// The horizontal scale.
    pub x: LinearScale,
    /// The vertical scale. Its range runs upwards, from the larger SVG coordinate. Values outside
    /// its domain are drawn at the edge, with a note.
    pub y: LinearScale,
    /// The target range of values.
    pub band: Option<Band<'a>>,
    /// Reference lines.
    pub rules: Vec<ReferenceLine<'a>>,
    /// The lines; between two runs there is a gap where the quantity is unknown.
    pub runs: Vec<LineRun>,
    /// Whether the area below each line is tinted.
    pub filled: bool,
}

/// Points that are joined by a line, as pairs of time and value.
#[derive(Debug, Clone)]
pub struct LineRun {
    /// The CSS class for the colour.
    pub class: String,
    /// The points in order of time.
    pub points: Vec<(f64, f64)>,
}

/// A shaded span of values.
#[derive(Debug, Clone, Copy)]
pub struct Band<'a> {
    /// The lower and upper end.
    pub span: (f64, f64),
    /// The name of the band.
    pub label: &'a str,
}

/// A dashed line at one value.
#[derive(Debug, Clone)]
pub struct ReferenceLine<'a> {
    /// The value.
    pub at: f64,
    /// The name, with the value in words; empty if the title row has no room for it.
    pub label: &'a str,
}

impl Panel<'_> {
    /// The panel as SVG elements, with the title above the frame.
    pub fn draw(&self) -> String {
        let mut svg = format!(r#"<g class="panel" data-key="{}">"#, self.key);
        self.frame(&mut svg);
        for run in &self.runs {
            self.line(&mut svg, run);
        }
        self.legend(&mut svg);
        svg.push_str("</g>");
        svg
    }

    fn frame(&self, svg: &mut String) {
        let (left, right) = self.x.range;
        let (bottom, top) = self.y.range;
        let (width, height) = (right - left, bottom - top);
        let _ = write!(
            svg,
            r#"<rect class="frame" x="{left}" y="{top}" width="{width}" height="{height}"/>"#
        );
        for value in self.y.ticks(3) {
            let y = self.y.at(value);
            let _ = write!(
                svg,
                r#"<path class="grid" d="M{left} {y:.1}H{right}"/><text class="num" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                left - 5.0,
                y + 3.5,
                number(value),
            );
        }
        if let Some(band) = self.band {
            let (y0, y1) = (self.clamped(band.span.1), self.clamped(band.span.0));
            let _ = write!(
                svg,
                r#"<rect class="band" x="{left}" y="{y0:.1}" width="{width}" height="{:.1}"/>"#,
                (y1 - y0).max(1.0)
            );
        }
        for rule in &self.rules {
            let y = self.clamped(rule.at);
            let _ = write!(svg, r#"<path class="rule" d="M{left} {y:.1}H{right}"/>"#);
        }
    }

    fn line(&self, svg: &mut String, run: &LineRun) {
        let points = thin(&run.points, &self.x);
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
        let mut d = String::new();
        for (i, &(t, value)) in points.iter().enumerate() {
            let command = if i == 0 { 'M' } else { 'L' };
            let _ = write!(d, "{command}{:.1} {:.1}", self.x.at(t), self.clamped(value));
        }
        if self.filled {
            let (bottom, _) = self.y.range;
            let (from, to) = (self.x.at(first.0), self.x.at(last.0));
            let _ = write!(
                svg,
                r#"<path class="area {}" d="{d}L{to:.1} {bottom}L{from:.1} {bottom}Z"/>"#,
                run.class
            );
        }
        let _ = write!(svg, r#"<path class="line {}" d="{d}"/>"#, run.class);
    }

    /// How far values extend beyond the frame: above, and below.
    fn outside(&self) -> impl Iterator<Item = String> {
        let values = || self.runs.iter().flat_map(|run| &run.points).map(|point| point.1);
        let highest = values().fold(f64::NEG_INFINITY, f64::max);
        let lowest = values().fold(f64::INFINITY, f64::min);
        let (min, max) = self.y.domain;
        let unit = self.title.rsplit_once(", ").map_or("", |(_, unit)| unit);
        let note = move |arrow: char, value| format!("{arrow} to {}", far_value(value, unit));
        let above = (highest > max).then(|| note('▲', highest));
        let below = (lowest < min).then(|| note('▼', lowest));
        above.into_iter().chain(below)
    }

    /// Draws the title, the value at the pointer, how far values extend beyond the frame, and the names of band and reference lines.
    fn legend(&self, svg: &mut String) {
        let (left, right) = self.x.range;
        let y = self.y.range.1 - 6.0;
        let _ = write!(
            svg,
            r#"<text class="title" x="{left}" y="{y:.1}">{}<tspan class="value"></tspan></text>"#,
            escape(self.title)
        );
        let names = self.band.iter().map(|b| b.label).chain(self.rules.iter().map(|r| r.label));
        let names = names.filter(|label| !label.is_empty()).map(str::to_owned);
        let labels: Vec<String> = self.outside().chain(names).collect();
        if !labels.is_empty() {
            let _ = write!(
                svg,
                r#"<text class="key" x="{right}" y="{y:.1}" text-anchor="end">{}</text>"#,
                typeset(&labels.join(" · "))
            );
        }
    }

    fn clamped(&self, value: f64) -> f64 {
        self.y.at(value.clamp(self.y.domain.0, self.y.domain.1))
    }
}
