//! Exports outcomes as tables, JSON, column files and self-contained HTML; each exporter has its
//! own file.
//!
//! An exporter is a function from an outcome to text or bytes. It reads no clock, opens no file and
//! makes no system call; the caller writes the result.
//!
//! ```
//! use sweetspot_report::{Column, Columns, csv};
//!
//! let mut columns = Columns::default();
//! columns.push("window_bytes", Column::Integer(vec![Some(625_000), None]));
//! columns.push("sizing", Column::Text(vec![Some("bdp".into()), Some("kernel".into())]));
//! assert_eq!(csv(&columns).lines().last(), Some(",kernel"));
//! ```

mod chart;
mod colour;
mod columns;
mod csv;
mod events;
mod headline;
mod html;
mod outcome;
mod page;
mod parquet;
mod results;
mod run_file;
mod run_series;
mod series;
mod series_row;
mod svg;
mod sweep;
mod table;
mod table_format;
mod theme;
pub mod wire;
mod wrap;

pub use chart::file as svg_file;
pub use colour::tones as colours;
pub use columns::{Column, Columns};
pub use csv::{CsvError, csv, from_csv};
pub use events::rise_in_words;
pub use headline::headline;
pub use html::page;
pub use outcome::{Certificate, DemoOutcome, FileFacts, PathFacts, VariantOutcome};
pub use page::{cards, document as html_document, in_html, table_element, whole as html_file};
pub use parquet::{from_parquet, parquet};
pub use results::{
    ReadError, ResultFile, SearchFile, SearchTrial, SeriesFile, Sheet, read, read_columns,
    read_file, report_page, sheets, titled,
};
pub use run_file::{RunFile, run_file};
pub use run_series::{RunSeries, TooManySamples};
pub use series::{QueueSeries, Series, SeriesEvent};
pub use series_row::SeriesRow;
pub use svg::escape;
pub use sweep::{SWEEP_FORMAT, SweepFile, SweepFilePoint, SweepPath, sweep_columns, sweep_table};
pub use table::{TABLE_LEGEND, table};
pub use table_format::TableFormat;
pub use theme::Theme;
