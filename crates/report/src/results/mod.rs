//! Builds one page from any results: runs, sweeps, demonstrations and time series.

mod any_file;
mod column_file;
mod comparison;
mod engines;
mod file;
mod over_time;
mod search;
mod sheet;
mod sheets;
mod sweeps;

pub use any_file::read_file;
pub use column_file::read_columns;
pub use file::{ReadError, ResultFile, SeriesFile, read};
pub use search::{SearchFile, SearchTrial};
pub use sheet::{Sheet, titled};
pub use sheets::sheets;

use maud::html;
use sweetspot_experiment::plot::Plot;

use crate::page::{cards, document, in_html, table_element};
use crate::theme::Theme;

/// The page with the `sheets` of `files`; the first sheet's summary is the title. `notes` are sentences about the
/// files.
pub fn report_page(
    files: &str,
    sheets: &[Sheet],
    notes: &[String],
    version: &str,
    theme: Theme,
) -> String {
    let title = sheets.first().map_or(files, |sheet| sheet.title.as_str());
    let body = html! {
        header {
            p.brand { "sweetspot report" }
            h1 { (title) }
            p { (files) }
            @for note in notes { p { (note) } }
            nav { @for sheet in sheets.iter().skip(1) { a href={ "#" (sheet.name) } { (sheet.title) } " " } }
        }
        @for (index, sheet) in sheets.iter().enumerate() {
            section {
                article id=(sheet.name) {
                    // The page's heading already shows the first sheet's title.
                    @if index > 0 { h2 { (sheet.title) } }
                    @for paragraph in sheet.about.lines() { p { (in_html(paragraph)) } }
                    (cards(&sheet.plots))
                    @for table in &sheet.tables { (table_element(table)) }
                }
            }
        }
        section #about {
            p.note { "Sweetspot " (version) ". " (explanations(sheets)) }
        }
    };
    document(title, &body, theme)
}

/// Explains how to read the pictures on the page.
fn explanations(sheets: &[Sheet]) -> String {
    let plots = || sheets.iter().flat_map(|sheet| &sheet.plots);
    let mut words = Vec::new();
    if plots().any(|plot| !plot.curves.is_empty()) {
        words.push(
            "Where many points share one pixel, the first, lowest, highest and last are drawn, so no peak is \
             lost; arrows give values beyond a frame.",
        );
    }
    let has_interval = |plot: &Plot| {
        plot.curves.iter().any(|curve| curve.half_widths.iter().any(|half| *half > 0.0))
    };
    if plots().any(has_interval) {
        words.push("Vertical strokes are 95 % confidence intervals over seeds (Student's t).");
    }
    if plots().any(|plot| !plot.boxes.is_empty()) {
        words.push(
            "A box spans the first to the third quartile, with the median in it, and its whiskers the 5th to \
             the 95th percentile.",
        );
    }
    words.join(" ")
}
