//! The simulations of Prasad, Dovrolis and Thottan, "Router Buffer Sizing for TCP Traffic and the
//! Role of the Output/Input Capacity Ratio", played again: [`measure`] plays a link with several
//! buffers, [`Fits`] finds the loss forms and the delay's slope, [`simulated`] the best buffer;
//! [`Study`] does so for the paper's Table I and draws its figures as data.

mod analysis;
mod document;
mod drawing;
mod formulas;
mod measure;
mod setup;
mod simulations;
mod study;
mod verify;

pub use analysis::{Fits, Objective, SimulatedBest, simulated};
pub use document::document;
pub use drawing::{FigureAxis, FigureCurve, FigureData, PublishedNumber};
pub use formulas::{figure_11, figure_19};
pub use measure::{BufferMeasured, MedianThroughput, SizeBin, measure};
pub use setup::{EXPONENTIAL, EXPONENTIAL_BUSY, POWER_LAW, Setup, TABLE_1, gamma, inputs, ladder};
pub use simulations::by_size;
pub use study::{PlayedRow, Study, StudyEffort};
pub use verify::{SimulatedLink, Verified, verify};
