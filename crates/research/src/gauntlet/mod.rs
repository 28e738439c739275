//! Compares sizings with the kernel's autotuning on a population of random paths.

mod change;
mod class;
mod cross;
mod document;
mod drawn_path;
mod measured;
mod path_basics;
mod pictures;
mod plan;
mod population;
mod random_stream;
mod report;
mod run;
mod table;

pub use class::PathClass;
pub use document::{DocumentInfo, document, picture_name};
pub use drawn_path::DrawnPath;
pub use measured::RunMeasured;
pub use pictures::pictures;
pub use plan::{GauntletPlan, GauntletRun, GauntletSettings, GauntletVariant};
pub use population::{Population, UnknownPopulation};
pub(crate) use random_stream::RandomStream;
pub use report::{ClassSummary, GauntletReport, PathComparison, Quantiles, VariantResult};
pub use run::Runner;
pub use table::table;
