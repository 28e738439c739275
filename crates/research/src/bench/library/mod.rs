//! The benchmark of the library: programs that size their own sockets across an emulated path, compared with
//! the same programs without sizing.

mod document;
mod example;
mod plan;

pub use document::document;
pub use example::{Built, LIBRARY, add_bucket};
pub use plan::{LibraryPlan, plans};
