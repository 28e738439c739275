//! Reproduces the figures and tables of the papers, with the published numbers beside ours.

mod bdp;
mod blog;
mod catalogue;
mod claims;
mod comparison;
mod document;
mod drs;
mod effort;
mod heffner;
mod router;
mod scenarios;
mod time;

pub use catalogue::{Entry, Figure, Paper, Precision, Stage, catalogue, find};
pub use comparison::{EngineValue, PublishedComparison};
pub use document::markdown;
