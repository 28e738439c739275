//! Reproduces the simulations of Prasad, Dovrolis and Thottan, "Router Buffer Sizing for TCP Traffic and the Role of
//! the Output/Input Capacity Ratio". [`measure`](sweetspot_experiment::router::measure()) simulates a link with several
//! buffers, [`Fits`] finds the loss forms and the slope of the delay, and [`simulated`] finds the best buffer.
//! [`Study`] covers the paper's Table I, [`Testbed`] its testbed, and [`Grid`] its section VI-B, with the data of its
//! figures. [`Situation`] is the input of the regression for a, b and f.

mod analysis;
mod bootstrap;
mod document;
mod drawing;
mod effort;
mod formulas;
mod grid;
mod regression;
mod setup;
mod simulations;
mod situations;
mod study;
mod testbed;

pub use analysis::{Fits, Objective, SimulatedBest, simulated};
pub use bootstrap::{BestOfSamples, Bootstrap};
pub use document::document;
pub use drawing::{FigureAxis, FigureCurve, FigureData, PublishedNumber};
pub use effort::StudyEffort;
pub use formulas::{figure_11, figure_19, rules_table, section_5};
pub use grid::{Grid, GridCell};
pub use regression::Regression;
pub use setup::{EXPONENTIAL, EXPONENTIAL_BUSY, POWER_LAW, Setup, TABLE_1, gamma, inputs};
pub use situations::{COLUMNS, Situation, drawn};
pub use study::{RunRow, Study};
pub use testbed::{Experiment, Testbed};
