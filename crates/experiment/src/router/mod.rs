//! A router's link in the simulator: [`measure()`] runs it with several buffers, and [`BufferTrial`] compares an
//! advised buffer with others.

mod advice;
mod ladder;
pub mod link;
pub mod measure;
pub mod run;
mod verify;

pub use advice::BufferTrial;
pub use ladder::ladder;
pub use link::SimulatedLink;
pub use measure::{BufferMeasured, MedianThroughput, Runner, measure};
pub use run::{Class, Run, SizeBin};
pub use verify::Effort;
