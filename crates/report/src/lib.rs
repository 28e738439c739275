//! Tables, JSON and self-contained HTML from outcomes: one exporter per file.
//!
//! An exporter is a function from an outcome to text. It reads no clock, opens no file and asks
//! nothing of the system: who calls it decides where the text goes.

mod colour;
mod headline;
mod html;
mod lab;
mod outcome;
mod series;
mod svg;
mod table;
mod wire;

pub use headline::headline;
pub use html::page;
pub use lab::{Cell, LabBench, NOTES_BEGIN, NOTES_END, Reference, markdown, notes};
pub use outcome::{Certificate, Contender, DemoOutcome, FileFacts, PathFacts};
pub use series::{Mark, QueueSeries, Series, percentile};
pub use table::table;
