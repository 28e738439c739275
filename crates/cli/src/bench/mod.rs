//! The benchmark on emulated paths: which paths, the reference program, and the results kept
//! between runs.

mod cells;
mod iperf3;
mod store;

pub use cells::{Plan, demo, matrix};
pub use iperf3::iperf3;
pub use store::Store;
