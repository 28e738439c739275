//! Whole sessions of a hostile peer with a server in the same process, as functions of bytes: each byte chooses an operation or
//! an operand, so every input is a session and most get far. Run by the fuzz targets (`cargo +nightly fuzz run incoming`) and
//! by the property tests of `sweetspot-transfer`.
//!
//! [`laws`] has the invariants after each session: the server has ended the session, and the client's directory contains
//! nothing that its peer may not put there.

#![allow(dead_code, unused_imports, reason = "each target uses one")]

mod choices;
mod fixture;
mod incoming;
mod laws;
mod outgoing;

pub use incoming::incoming;
pub use outgoing::outgoing;
