//! BPF programs that watch and limit TCP connections from inside the kernel, for `sweetspot tune --via bpf`.
//!
//! `bpf/tune.bpf.c` runs at the events of all TCP connections in a cgroup. It finds bulk transfers, reports them once
//! per interval, and applies the limit from user space at the next segment. It makes no decisions: samples go to the
//! path groups of `sweetspot-control`, and their limits come back as [`Command`]s.
//!
//! - [`SocketPrograms`] loads the programs, attaches them to a cgroup, and undoes their effects.
//! - [`Connections`] holds the programs' reports and the decision about each connection.
//! - [`probe`] checks this host for each requirement of the programs and describes the result in words.
//!
//! Limits hold only while a lease is renewed ([`Connections::renew`]). When it ends, the BPF program itself restores
//! each connection at the connection's next segment. The program stays attached until it is detached or its cgroup is
//! removed.

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
