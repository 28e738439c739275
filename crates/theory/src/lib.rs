//! Closed forms: what a TCP transfer, its window and a router's buffer should be, on paper.
//!
//! One file per result. Above the body of each function stands the paper and equation; its types
//! carry the units; its errors say where the formula does not hold. A function answers with a
//! number or a [`TheoryError`], never with NaN or a value that was made up.
//!
//! - [`path`]: throughput against socket buffer, cross traffic, the sawtooth, the six
//!   bandwidth-delay products (Jain, Prasad, Dovrolis).
//! - [`reno`]: throughput against loss (PFTK, the L- and S-model), losses of many flows (Morris).
//! - [`router`]: the best buffer of a router (Prasad, Dovrolis, Thottan), and the other rules.
//! - [`host`]: socket buffer to advertised window, window scale, frame efficiency, receivers that
//!   size themselves (Gordon; Heffner; Weigle and Feng; RFC 9840).
//!
//! - [`engine`]: the first of the engines that play a scenario: those that a closed form covers.
//!
//! The crate is pure: it reads no clock and touches no operating system, and its logarithms and
//! powers give the same bits on every platform.

pub mod engine;
pub mod host;
pub mod path;
pub mod reno;
pub mod router;

mod error;
mod packets;

pub use error::TheoryError;
pub use packets::Packets;
