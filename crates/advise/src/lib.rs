//! Advice from closed forms: how large a window, which host settings, how much router buffer,
//! why, and what it gains.
//!
//! A question goes in, an advice comes out that can say itself in words and tables
//! (`text`) and in JSON (`json`). The crate is pure: what a host looks like is handed in as a
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
