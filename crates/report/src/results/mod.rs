//! One page from any results: runs, sweeps, demonstrations, time series.

mod any_file;
mod column_file;
mod comparison;
mod engines;
mod file;
mod over_time;
mod sheets;
mod sweeps;

pub use any_file::read_file;
pub use column_file::{read_columns, rows_of};
pub use file::{ReadError, ResultFile, SeriesFile, SeriesRow, read};
pub use sheets::{Sheet, sheets};

use crate::page::{cards, document, in_html, table_element};
use crate::svg::escape;
use crate::theme::Theme;

/// The page with the `sheets` of `files`, titled by the first sheet's summary; `notes` are sentences about the files.
pub fn report_page(
    files: &str,
    sheets: &[Sheet],
    notes: &[String],
    version: &str,
    theme: Theme,
) -> String {
    let title = sheets.first().map_or(files, |sheet| sheet.title.as_str());
    // The page's heading is the first sheet's.
    let heading = |index: usize, sheet: &Sheet| match index {
        0 => String::new(),
        _ => format!("<h2>{}</h2>", escape(&sheet.title)),
    };
    let sections: String = sheets
        .iter()
        .enumerate()
        .map(|(index, sheet)| section(sheet, &heading(index, sheet)))
        .collect();
    let contents: String = sheets
        .iter()
        .skip(1)
        .map(|sheet| format!("<a href=\"#{}\">{}</a> ", sheet.name, escape(&sheet.title)))
        .collect();
    let notes: String = notes.iter().map(|note| format!("<p>{}</p>", escape(note))).collect();
    let body = format!(
        r#"<header>
<p class="brand">sweetspot report</p>
<h1>{}</h1>
<p>{}</p>
{notes}<nav>{contents}</nav>
</header>
{sections}
<section id="about">
<p class="note">Sweetspot {}. Of all points in one unit's width of a picture the first, lowest, highest
and last are drawn, so no peak is lost; arrows say how far values lie beyond a frame. Upright strokes are
95 % confidence intervals over seeds (Student's t). A box goes from the first to the third quartile, with the median in it,
and its whiskers from the 5th to the 95th percentile.</p>
</section>"#,
        escape(title),
        escape(files),
        escape(version),
    );
    document(title, &body, theme)
}

fn section(sheet: &Sheet, heading: &str) -> String {
    let tables: String = sheet.tables.iter().map(table_element).collect();
    format!(
        r#"<section><article id="{}">{heading}<p>{}</p>{}{tables}</article></section>"#,
        sheet.name,
        in_html(&sheet.about),
        cards(&sheet.plots),
    )
}
