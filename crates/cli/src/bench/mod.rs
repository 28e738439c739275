//! The benchmark on emulated paths: which paths, the reference program, and the results kept
//! between runs; and the median that benchmarks quote.

mod cells;
mod iperf3;
mod store;

pub use cells::{Plan, demo, matrix};
pub use iperf3::iperf3;
pub use store::Store;

/// The middle one of `values`, the upper of two; `None` of none.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
