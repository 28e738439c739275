//! A bulk transfer that sizes itself: the I/O around [`sweetspot_protocol`].
//!
//! The crate is what `sweetspot send` and `sweetspot serve` run. A [`Server`] listens, admits senders that hold
//! its ticket and writes what they bring; [`send`] delivers one file. Both use blocking threads, TLS 1.3 with a
//! pinned certificate, and BLAKE3: a received file is hashed before it gets its name. At the receiver a
//! sizing controller limits the window, by [`sweetspot_protocol::ControlLoop`].
//!
//! [`TransferObserver`] watches a transfer, [`ServerObserver`] a server; [`TransferError`] says what went wrong
//! and what to do next.
//!
//! # Example
//!
//! A file sent across loopback:
//!
//! ```
//! use std::net::SocketAddr;
//!
//! use sweetspot_protocol::TransferSummary;
//! use sweetspot_transfer::{
//!     NullObserver, SendOptions, ServeOptions, Server, ServerObserver, TransferError,
//!     TransferObserver, send,
//! };
//! use sweetspot_units::Duration;
//!
//! struct Quiet;
//!
//! impl ServerObserver for Quiet {
//!     fn admitted(&self, _number: u64, _peer: SocketAddr) -> Box<dyn TransferObserver> {
//!         Box::new(NullObserver)
//!     }
//!     fn ended(&self, _number: u64, _result: &Result<TransferSummary, TransferError>) {}
//!     fn turned_away(&self, _error: &TransferError) {}
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (from, to) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! let file = from.path().join("numbers.txt");
//! std::fs::write(&file, "1 2 3")?;
//!
//! let server = Server::bind(ServeOptions {
//!     directory: to.path().to_owned(),
//!     listen: "127.0.0.1:0".parse()?,
//!     advertise: None,
//!     once: true,
//!     sizing: None,
//!     congestion: None,
//!     path: None,
//!     overwrite: false,
//!     probes: true,
//!     lifetime: Duration::from_secs(60),
//! })?;
//! let ticket = server.ticket().clone();
//! let sent = std::thread::scope(|scope| {
//!     let served = scope.spawn(|| server.run(&Quiet));
//!     let sent = send(&file, &ticket, &SendOptions::default(), &mut NullObserver);
//!     served.join().expect("the server does not panic")?;
//!     sent
//! })?;
//! assert!(sent.hash_ok);
//! assert_eq!(std::fs::read_to_string(to.path().join("numbers.txt"))?, "1 2 3");
//! # Ok(())
//! # }
//! ```

mod error;
mod io;
mod observer;

pub use error::TransferError;
pub use io::sender::{SendOptions, send};
pub use io::server::{ServeOptions, Server, ServerObserver};
pub use observer::{Agreed, NullObserver, SeriesRecorder, TransferObserver};
