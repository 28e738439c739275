//! Agreement with ns-2 on the same scenarios.

mod agreement;
mod case;
mod document;

pub use agreement::{DeviationSpread, Ns2Comparison, Ns2Maximum, compare, maxima, spread};
pub use case::{Ns2Case, Ns2Measured, Ns2Setting, cases};
pub use document::{MAX_DEVIATION, MAX_MAXIMUM_DEVIATION, MAX_MEDIAN_DEVIATION, document};
