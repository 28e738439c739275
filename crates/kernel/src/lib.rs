//! BPF programs that watch and limit TCP connections from inside the kernel, for `sweetspot tune --via bpf`.
//!
//! `bpf/tune.bpf.c` runs at events of all TCP connections of a cgroup. It finds bulk transfers, reports them once per
//! interval, and holds the limit that user space decided at the very next segment. It decides nothing: samples go to the
//! path groups of `sweetspot-control`, and their limits come back as [`Command`]s.
//!
//! - [`SocketPrograms`] loads the programs, attaches them to a cgroup, and undoes everything.
//! - [`Connections`] holds the programs' reports, and the decision about each connection.
//! - [`probe`] checks this host for each requirement of the programs, in words.
//!
//! Limits are held only while a lease is renewed ([`Connections::renew`]). When it ends, each connection is restored at its
//! next segment by the program itself, which stays on its cgroup until it is detached or the cgroup goes.

mod command;
mod connections;
mod error;
mod host;
pub mod probe;
mod programs;
mod record;

pub use command::{Command, RememberedPath, Transfers, Watch};
pub use connections::{Connections, LEASE};
pub use error::KernelError;
pub use programs::{SocketPrograms, held_window};
pub use record::{Congestion, Record, RecordKind};
