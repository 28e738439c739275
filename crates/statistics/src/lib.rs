//! Statistics of measured numbers: [`Sorted`] samples and their quantiles, means with their errors and intervals,
//! Student's t, the least-squares [`Line`], the logarithmic [`Histogram`], and root finding by bisection.
//!
//! Every function gives the same bits on every platform, because logarithms and gamma functions come from `libm`. The
//! crate reads no clock and touches no operating system.
//!
//! # Example
//!
//! ```
//! use sweetspot_statistics::{Sorted, mean_interval};
//!
//! let rates = [94.0, 96.0, 95.0];
//! assert_eq!(rates.into_iter().collect::<Sorted>().quantile(0.25), Some(94.5));
//! // The standard error is 1 / sqrt(3); t with two degrees of freedom is 4.30.
//! let (mean, half) = mean_interval(&rates).unwrap();
//! assert_eq!(format!("{mean} ± {half:.2}"), "95 ± 2.48");
//! ```

mod histogram;
mod line;
pub mod roots;
mod samples;
mod sorted;
pub mod student_t;

pub use histogram::{Histogram, HistogramBin};
pub use line::{Line, LineSums};
pub use samples::{
    dependent_mean_interval, mean, mean_interval, squared_error, wilson, wilson_of_clusters,
};
pub use sorted::{Sorted, median, quantile};
