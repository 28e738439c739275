//! The benchmark on emulated paths: the paths, and the reference program.

mod cells;
mod iperf3;

pub use cells::{CellPlan, demo, matrix};
pub use iperf3::iperf3;
