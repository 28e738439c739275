//! Agreement with ns-2 on the same work.

mod agreement;
mod case;
mod document;

pub use agreement::{DeviationSpread, Ns2Comparison, Ns2Maximum, compare, maxima, spread};
pub use case::{Ns2Case, Ns2Measured, Ns2Setting, cases};
pub use document::{MAXIMUM_AT_MOST, MEDIAN_AT_MOST, WORST_AT_MOST, document};
