//! Reproduces the figures and tables of the papers, and compares the published numbers with ours.

mod bdp;
mod blog;
mod catalogue;
mod claims;
mod comparison;
mod document;
mod drs;
mod effort;
mod figure;
mod heffner;
mod router;
mod scenarios;
mod time;

pub use catalogue::{catalogue, find};
pub use comparison::{EngineValue, PublishedComparison};
pub use document::markdown;
pub use figure::{Entry, Figure, Paper, Precision, Stage};
