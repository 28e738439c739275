//! The only crate that touches the kernel: clocks, raw socket options, namespaces, packet rings.
//!
//! It is also the only crate in which `unsafe` may stand; every block says why it is sound.

pub mod clock;
pub mod file;
pub mod process;
mod sockopt;
pub mod sysctl;
pub mod tcp;
