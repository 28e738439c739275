//! Whole sessions of a hostile peer with a server in the same process, as functions of bytes: each byte chooses an operation or
//! an operand, so that every input is a session and most of them get deep. The fuzz targets drive them (`cargo +nightly fuzz
//! run incoming`), and so do the property tests of `sweetspot-transfer`.
//!
//! [`laws`] has the invariants after each session: the server ended it, and the client's directory holds nothing that its peer
//! may not put there.

#![allow(dead_code, unused_imports, reason = "each target uses one")]

mod choices;
mod fixture;
mod incoming;
mod laws;
mod outgoing;

pub use incoming::incoming;
pub use outgoing::outgoing;
