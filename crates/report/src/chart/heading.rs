use std::fmt::Write;

use sweetspot_experiment::plot::Plot;

use crate::svg::typeset;
use crate::wrap::wrapped;

/// The text above the frame, and its height.
pub struct Heading {
    /// The SVG elements.
    pub svg: String,
    /// Height in SVG units, down to the frame.
    pub height: f64,
}

const HEADING_LINE_HEIGHT: f64 = 14.0;
/// Width of an average bold letter at a font size of 11 units, slightly generous.
const HEADING_CHAR_WIDTH: f64 = 6.6;
const LEFT: f64 = 4.0;

/// The title, in as many rows as needed, and below it the name of the vertical axis.
pub fn draw(plot: &Plot, width: f64) -> Heading {
    let mut svg = String::new();
    let mut y = 2.0;
    let mut row = |class: &str, words: &str| {
        y += HEADING_LINE_HEIGHT;
        let _ =
            write!(svg, r#"<text class="{class}" x="{LEFT}" y="{y:.1}">{}</text>"#, typeset(words));
    };
    for line in wrapped(&plot.title, ((width - 2.0 * LEFT) / HEADING_CHAR_WIDTH) as usize) {
        row("title", &line);
    }
    row("num", &plot.y.label);
    Heading { svg, height: y + 8.0 }
}
