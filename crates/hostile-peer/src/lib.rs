//! A peer that speaks the protocol as an attacker would, for tests.
//!
//! [`Raw`] is one TLS connection. It sends any frame in any order, in either role, and reads the answers frame by
//! frame. [`Raw::connect`] attacks a server; a [`Listener`] mints a ticket and attacks each program that connects:
//! `send TICKET`, `receive TICKET` and the local end of `copy`. [`RawEntry`] and [`frame`] build messages that the
//! honest encoder cannot. A failed connection causes a panic, because only tests use this crate; [`Raw::try_send`] and
//! [`Raw::next`] return the error instead.
//!
//! ```no_run
//! use sweetspot_hostile_peer::{Received, Raw, RawEntry};
//! # let ticket: sweetspot_protocol::Ticket = "sweetspot1:".parse().unwrap();
//! // A sender that offers a set-user-ID file.
//! let mut raw = Raw::accepted(&ticket);
//! let entry = RawEntry { mode: 0o6755, ..RawEntry::file("tool", 3) };
//! let received = raw.send_all(&[(entry, Some(b"abc"))]);
//! assert!(matches!(received.last(), Some(Received::Closed(_))));
//! ```

mod code;
mod listener;
mod raw;
mod receiver;
mod sender;
mod tls;
mod wire;

pub use listener::Listener;
pub use raw::{Dial, Raw, Received};
pub use sender::offer;
pub use tls::Identity;
pub use wire::{RawEntry, entries, frame, piece};
