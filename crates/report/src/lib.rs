//! Tables, JSON, column files and self-contained HTML from outcomes: one exporter per file.
//!
//! An exporter is a function from an outcome to text or bytes. It reads no clock, opens no file and asks
//! nothing of the system: who calls it decides where the text goes.

mod colour;
mod columns;
mod headline;
mod html;
mod lab;
mod outcome;
mod parquet;
mod run_series;
mod series;
mod svg;
mod table;
mod wire;

pub use columns::{Column, Columns};
pub use headline::headline;
pub use html::page;
pub use lab::{Cell, LabBench, Reference, markdown, notes};
pub use outcome::{Certificate, Contender, DemoOutcome, FileFacts, PathFacts};
pub use parquet::parquet;
pub use run_series::RunSeries;
pub use series::{Mark, QueueSeries, Series, percentile};
pub use table::table;
