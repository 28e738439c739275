//! The simulations of Prasad, Dovrolis and Thottan, "Router Buffer Sizing for TCP Traffic and the
//! Role of the Output/Input Capacity Ratio", played again: [`measure`] plays a link with several
//! buffers, [`Fits`] finds the loss forms and the delay's slope, [`simulated`] the best buffer;
//! [`Study`] does so for the paper's Table I and draws its figures as data.

mod analysis;
mod document;
mod figure;
mod formulas;
mod measure;
mod setup;
mod simulations;
mod study;

pub use analysis::{Fits, Served, Simulated, simulated};
pub use document::document;
pub use figure::{Axis, Curve, Figure, Mark};
pub use measure::{Measured, SizeBin, Throughput, measure};
pub use setup::{Setup, TABLE_1, gamma, inputs, ladder};
pub use study::{Played, Scale, Study};
