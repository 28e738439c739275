//! A population of random paths on which sizings are judged against the kernel's own.

mod change;
mod class;
mod cross;
mod document;
mod drawn_path;
mod measured;
mod pictures;
mod plan;
mod play;
mod population;
mod random_stream;
mod report;
mod table;

pub use class::Class;
pub use document::{DocumentInfo, document, picture_name};
pub use drawn_path::DrawnPath;
pub use measured::Measured;
pub use pictures::pictures;
pub use plan::{Plan, Run, Settings, Variant};
pub use play::Player;
pub use population::{Population, UnknownPopulation};
pub use report::{Comparison, GauntletReport, Quantiles, Summary, VariantResult};
pub use table::table;
