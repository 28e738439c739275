//! A path between two network namespaces of this machine, in real time, with a certificate.
//!
//! ```text
//!  near namespace            middle (this process)              far namespace
//!  10.77.0.1  veth --- veth | ring -> Direction -> send | veth --- veth  10.77.0.2
//!                           | send <- Direction <- ring |
//! ```
//!
//! The kernel's own TCP runs in the near and far namespaces; every packet between them passes
//! through this process, which holds it as the elements of [`sweetspot_path`] say: rate,
//! drop-tail queue, delay, loss, jitter, each direction its own. A packet's fate is decided by
//! the time at which the kernel stamped its arrival, never by the time at which this process
//! got to it; being late can only release packets late, and how late each one was is counted
//! in the [`Certificate`] that ends every emulation.
//!
//! **What counts as size.** Rates, buffers and counters count IP packets; Ethernet's 14 bytes of
//! header are not part of the path. Devices have every offload off, so packets are at most MTU
//! long and carry real checksums.
//!
//! **Flows of different lengths.** Besides its own address each side can have those of further
//! hosts, in pairs ([`HostPair`]): what goes between the two of a pair shares the bottleneck and has a
//! propagation, and a few of TCP's habits, of its own.
//!
//! **How to use it.** [`isolate`] first, while the process has one thread; inside,
//! [`Emulation::start`], then commands and threads on its two [`Side`]s, then
//! [`Emulation::finish`]. Emulations can follow one another in the same process.

mod certificate;
mod counters;
mod emulation;
mod engine;
mod error;
mod host_pair;
mod lateness;
mod netlink;
mod path_direction;
mod pool;
mod relay;
mod self_test;
mod serial;
mod series;
mod side;
mod sleep_monitor;
mod verdict;
mod veth;

pub use certificate::{
    Certificate, DirectionCertificate, LatenessBucket, LatenessCertificate, MachineLosses,
};
pub use emulation::Emulation;
pub use error::EmulatorError;
pub use host_pair::{HostPair, MOST_LEAVES};
pub use lateness::Lateness;
pub use self_test::{DelayError, SelfTest, Trial, rehearse, self_test};
pub use series::{Flow, Sample};
pub use side::Side;
pub use sweetspot_linux::isolation::{IsolationError, isolate};
pub use verdict::Verdict;
