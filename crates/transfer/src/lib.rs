//! A bulk transfer that sizes itself.
//!
//! The pure part knows no clock and no operating system: [`Ticket`], [`protocol`], [`ControlLoop`],
//! names, outcomes and series. Around it [`Server`] and [`send`] do the I/O on blocking threads.
//!
//! [`Outcome`] is what `--json` prints, [`series`] what `--series` writes.

mod control_loop;
mod error;
mod io;
mod measured;
mod name;
mod observer;
mod outcome;
pub mod probe;
pub mod protocol;
pub mod series;
mod ticket;

pub use control_loop::{ControlLoop, Effect, ROW_INTERVAL};
pub use error::TransferError;
pub use io::sender::{SendOptions, send};
pub use io::server::{ServeOptions, Server, ServerObserver};
pub use measured::Measured;
pub use name::{FileName, NameError};
pub use observer::{Agreed, NullObserver, Observer, Recorder};
pub use outcome::{Outcome, Probes, Role, RttSource};
pub use ticket::{Host, Secret, Ticket, TicketError};
