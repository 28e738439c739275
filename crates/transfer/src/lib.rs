//! A bulk transfer that sizes itself: the I/O around [`sweetspot_protocol`].
//!
//! `sweetspot send`, `receive`, `serve` and `copy` run this crate. A [`Server`] listens and admits peers that hold its
//! ticket; [`send`] and [`receive`] connect to one. They move files, directories and links, skip content that is
//! already there, and resume interrupted transfers. The crate uses blocking threads, TLS 1.3 with a pinned certificate,
//! and BLAKE3: it verifies each piece, and gives a file its name once the file is complete. At the receiver, one sizing
//! controller limits the total window of all connections of a transfer, through [`sweetspot_control::ControlLoop`].
//!
//! [`measure`] measures the path to a server instead of transferring files; [`measure_one_sided`] measures a path to any TCP
//! server.
//!
//! A [`TransferObserver`] watches a transfer, a [`ServerObserver`] a server. A [`TransferError`] gives the cause of a
//! failure and the next step.
//!
//! # Example
//!
//! Sends a file over loopback:
//!
//! ```
//! use std::net::SocketAddr;
//!
//! use sweetspot_control::TransferSummary;
//! use sweetspot_transfer::{
//!     AdmittedTransfer, EndsAfter, NullObserver, Purpose, ReceiveOptions, SendOptions, ServeOptions, Server, ServerObserver,
//!     Sources, Target, TransferError, TransferObserver, send,
//! };
//!
//! struct Quiet;
//!
//! impl ServerObserver for Quiet {
//!     fn admitted(&self, _transfer: AdmittedTransfer<'_>) -> Box<dyn TransferObserver> {
//!         Box::new(NullObserver)
//!     }
//!     fn ended(&self, _number: u64, _result: &Result<TransferSummary, TransferError>) {}
//!     fn rejected(&self, _peer: SocketAddr, _client: Option<&str>, _error: &TransferError) {}
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (from, to) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! let file = from.path().join("numbers.txt");
//! std::fs::write(&file, "1 2 3")?;
//!
//! let server = Server::bind(ServeOptions {
//!     listen: "127.0.0.1:0".parse()?,
//!     ends: EndsAfter::First,
//!     ..ServeOptions::new(Purpose::Receive(ReceiveOptions::at(Target::Into(to.path().to_owned()))))
//! })?;
//! let ticket = server.ticket().clone();
//! let sources = Sources { paths: vec![file], ..Sources::default() };
//! let options = SendOptions { sources, ..SendOptions::default() };
//! let sent = std::thread::scope(|scope| {
//!     let served = scope.spawn(|| server.run(&Quiet));
//!     let sent = send(&ticket.into(), &options, &mut NullObserver);
//!     served.join().expect("the server does not panic")?;
//!     sent
//! })?;
//! assert!(sent.hash_ok);
//! assert_eq!(std::fs::read_to_string(to.path().join("numbers.txt"))?, "1 2 3");
//! # Ok(())
//! # }
//! ```

mod control;
mod ends;
mod error;
mod files;
mod limits;
mod lock;
mod observer;
mod options;
mod wire;

pub use ends::client::{first_reachable, receive, send};
pub use ends::measure::{Measured, TcpFacts, measure, measure_one_sided};
pub use ends::server::Server;
pub use error::for_peer::NO_PARENT;
pub use error::{ClientsFileError, Result, TransferError};
pub use files::incoming::{Delete, NamedThings, Nameless, RequestedSources};
pub use files::source::Sources;
pub use files::target::Target;
pub use observer::{
    AdmittedTransfer, Agreed, FileLog, FileRecord, NullObserver, Progress, ServerObserver,
    TransferObserver,
};
pub use options::{EndsAfter, Purpose, ReceiveOptions, SendOptions, ServeOptions, ServiceOptions};
pub use wire::identity::{Identity, draw_secret};
pub use wire::link::{Contact, Reached};
pub use wire::pace::{Allowance, ApplicationPace};
pub use wire::spoken::draw_code;
