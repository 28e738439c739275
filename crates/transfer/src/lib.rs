//! A bulk transfer that sizes itself.
//!
//! The pure part knows no clock and no operating system: [`Ticket`], [`protocol`], [`Steering`],
//! names, outcomes and series. Around it [`Server`] and [`send`] do the I/O on blocking threads.
//!
//! [`Outcome`] is what `--json` prints, [`series`] what `--series` writes.

mod error;
mod io;
mod measured;
mod name;
mod observer;
mod outcome;
pub mod probe;
pub mod protocol;
pub mod series;
mod steering;
mod ticket;

pub use error::TransferError;
pub use io::sender::{SendOptions, send};
pub use io::server::{Reception, ServeOptions, Server};
pub use measured::Measured;
pub use name::{FileName, NameError};
pub use observer::{Blind, Observer, Opened, Recorder};
pub use outcome::{Outcome, Probes, Role, RttSource};
pub use steering::{Effect, ROW_INTERVAL, Steering};
pub use ticket::{Host, Secret, Ticket, TicketError};
