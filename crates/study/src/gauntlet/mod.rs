//! A population of random paths on which sizings are judged against the kernel's own.

mod change;
mod class;
mod cross;
mod document;
mod drawn_path;
mod lot;
mod measured;
mod pictures;
mod plan;
mod play;
mod population;
mod statistics;
mod table;
mod verdict;

pub use class::Class;
pub use document::{Imprint, document, picture_name};
pub use drawn_path::DrawnPath;
pub use measured::Measured;
pub use pictures::pictures;
pub use plan::{Contender, Plan, Run, Settings};
pub use play::Player;
pub use population::{Population, UnknownPopulation};
pub use table::table;
pub use verdict::{Comparison, Judgement, Quantiles, Summary, Verdict};
