//! Advice on window size, host settings and router buffers, from closed forms.
//! Each module has a question, an `advise` function and an advice. The advice prints itself as text
//! (`text`) and as JSON (`json`). The crate is pure: the state of a host is passed in as a
//! [`host::Snapshot`].

pub mod host;
pub mod router;
pub mod window;

mod error;
mod formula;
mod kernel;
mod text;

pub use error::AdviceError;
pub use formula::Formula;
pub use kernel::Kernel;
