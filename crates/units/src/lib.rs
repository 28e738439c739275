//! Dimensions as types: [`Rate`], [`Bytes`], [`Time`], [`Deadline`], [`Duration`],
//! [`Probability`] and [`Volume`], with the arithmetic that physics allows and no other.
//!
//! `Rate * Duration = Bytes`, `Bytes / Rate = Duration`, `Bytes / Duration = Rate`. 1 kB is
//! 1000 B as in the papers; 1024 B is spelt KiB. Parsing and printing always carry the unit.
//!
//! The crate is pure: it reads no clock and touches no operating system.

mod bytes;
mod deadline;
mod error;
mod notation;
mod probability;
mod rate;
mod ratio;
mod time;
mod volume;

pub use bytes::Bytes;
pub use deadline::Deadline;
pub use error::UnitError;
pub use probability::Probability;
pub use rate::Rate;
pub use time::{Duration, Time};
pub use volume::Volume;
