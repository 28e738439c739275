//! Benchmarks of Sweetspot, which write their results to `docs/results`.

pub mod commands;
mod lab;
mod library;
mod limits;
mod live;
mod measure;
mod speed;
mod store;
mod transfer;

/// The median of `values`, of an even number the upper one; `None` if there are no values.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
