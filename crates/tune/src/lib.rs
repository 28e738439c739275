//! Tunes live TCP connections of unmodified programs.
//!
//! This is the side of `sweetspot tune` that faces the kernel: it finds connections, samples them and applies limits.
//! The decisions come from [`sweetspot_control`] and the controllers in `sweetspot-sizing`; this crate itself has no
//! control law.
//!
//! - A [`Scope`] finds connections. [`HostScope`] covers a whole host, by a policy, and [`ProcessFamily`] a process and its
//!   descendants; both search processes. [`KernelScope`] covers a cgroup, from inside the kernel.
//! - The [`Tuner`] samples each connection, sets its window limit or pacing rate, and logs each action.
//! - [`guarded`] runs the tuner under a guardian process, which undoes everything when the tuner dies; a last guardian
//!   covers the death of both. The [`Leases`] list the limits to undo; if all three processes died, [`lift_leftovers`]
//!   undoes them.
//! - [`held_window`] tells another program whether a tuner holds a connection's window.
//! - The [`Exporter`] serves a [`TunerSnapshot`] as Prometheus metrics, on loopback only.
//!
//! # Example
//!
//! Metrics on a loopback port:
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::{TcpListener, TcpStream};
//!
//! use sweetspot_tune::{Exporter, TunerSnapshot};
//!
//! // A port that is free now.
//! let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
//! let exporter = Exporter::start(address)?;
//! exporter.publish(TunerSnapshot { watched: 3, ..TunerSnapshot::default() }.prometheus());
//!
//! let mut client = TcpStream::connect(address)?;
//! client.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
//! let mut answer = String::new();
//! client.read_to_string(&mut answer)?;
//! assert!(answer.contains("sweetspot_connections_watched 3"));
//! # Ok::<(), std::io::Error>(())
//! ```

mod connection;
mod error;
mod exporter;
mod guard;
mod handle;
mod host;
mod kernel;
mod kernel_scope;
mod lease;
mod leftovers;
mod metrics;
mod options;
mod path;
mod sample;
mod scope;
mod tuner;
mod users;

pub use error::{TuneError, Untunable};
pub use exporter::Exporter;
pub use guard::{Leases, guarded};
pub use host::HostScope;
pub use kernel::{BULK_WITHIN, KernelConnection, watch};
pub use kernel_scope::{Chosen, KernelScope, undo};
pub use leftovers::{held_window, lift_leftovers};
pub use metrics::{PeerSnapshot, TunerSnapshot};
pub use options::TunerOptions;
pub use scope::{Found, FoundConnection, FoundSocket, ProcessFamily, Scope, Selection};
pub use tuner::Tuner;
pub use users::uid_of;
