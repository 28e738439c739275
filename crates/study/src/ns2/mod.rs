//! Agreement with ns-2 on the same work.

mod agreement;
mod case;
mod document;

pub use agreement::{Comparison, Maximum, Spread, compare, maxima, spread};
pub use case::{Case, Measured, Setting, cases};
pub use document::{MAXIMUM_AT_MOST, MEDIAN_AT_MOST, WORST_AT_MOST, document};
