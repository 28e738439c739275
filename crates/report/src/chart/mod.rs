//! Draws any [`Plot`] as SVG: the axes, the curves, the published marks, and a legend. Colours distinguish cases, line styles
//! distinguish engines.

mod axes;
mod curves;
mod direct;
mod heading;
mod legend;
mod marks;
mod scale;
mod style;
mod tone;

use sweetspot_experiment::plot::{MarkPosition, Plot};

use crate::svg::escape;
use crate::theme::Theme;
use axes::PlotFrame;
pub use style::page_style;

/// Width of a picture in SVG units. At this width, letters of 11 units are legible on a phone.
const WIDTH: f64 = 360.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 16.0;
/// Height of the frame around the curves.
const FRAME: f64 = 190.0;
/// Height below the frame, for the ticks and the name of the x axis.
const FOOT: f64 = 36.0;

/// `plot` as an SVG element without styles, for a page with [`page_style`].
pub fn element(plot: &Plot) -> String {
    let (svg, height) = body(plot);
    format!(
        r#"<svg class="chart" viewBox="0 0 {WIDTH} {height:.0}" role="img" aria-label="{}">{svg}</svg>"#,
        escape(&in_words(plot)),
    )
}

/// Several plots, one below the other, as a standalone SVG file.
pub fn file(title: &str, plots: &[Plot], theme: Theme) -> String {
    let style = style::file_style(theme);
    let mut y = 0.0;
    let mut inner = String::new();
    for plot in plots {
        let (svg, height) = body(plot);
        inner += &format!(r#"<g transform="translate(0 {y:.0})">{svg}</g>"#);
        y += height + 12.0;
    }
    let scale = 2.0;
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="{:.0}" height="{:.0}" viewBox="0 0 {WIDTH} {y:.0}" role="img"><title>{}</title><style>{style}</style><rect class="paper" width="{WIDTH}" height="{y:.0}"/>{inner}</svg>"#,
        WIDTH * scale,
        y * scale,
        escape(title),
    )
}

fn body(plot: &Plot) -> (String, f64) {
    let heading = heading::draw(plot, WIDTH);
    let bottom = heading.height + FRAME;
    let up = (bottom, heading.height);
    let named = direct::room(plot).and_then(|room| {
        let frame = PlotFrame::of(plot, (LEFT, WIDTH - room), up);
        let names = direct::draw(plot, &frame)?;
        Some((frame, names))
    });
    let legend = legend::draw(plot, named.is_some(), (bottom + FOOT, WIDTH));
    let (frame, names) =
        named.unwrap_or_else(|| (PlotFrame::of(plot, (LEFT, WIDTH - RIGHT), up), String::new()));
    let svg = heading.svg + &frame.draw(plot) + &curves::draw(plot, &frame) + &names + &legend.svg;
    (svg, bottom + FOOT + legend.height)
}

/// A description of the picture for screen readers.
fn in_words(plot: &Plot) -> String {
    let mut names: Vec<String> = plot
        .curves
        .iter()
        .map(|curve| format!("{} ({})", curve.label, curve.origin.name()))
        .collect();
    names.dedup();
    names.extend(plot.boxes.iter().map(|each| each.label.clone()));
    let levels = plot
        .marks
        .iter()
        .filter(|mark| !matches!(mark.place, MarkPosition::Span(..) | MarkPosition::Moment(_)));
    names.extend(levels.map(|mark| mark.label.clone()));
    format!("{}: {} against {}: {}", plot.title, plot.y.label, plot.x.label, names.join(", "))
}
