//! Emulates a path between two network namespaces of this machine in real time, and certifies its accuracy.
//!
//! The crate is for experiments with the kernel's own TCP: the demo, the lab and the benchmarks run programs at the two
//! ends of a path with a known rate, buffer, delay and loss.
//!
//! ```text
//!  near namespace            middle (this process)              far namespace
//!  10.77.0.1  veth --- veth | ring -> Direction -> send | veth --- veth  10.77.0.2
//!                           | send <- Direction <- ring |
//! ```
//!
//! The kernel's own TCP runs in the near and far namespaces; every packet between them passes through this process,
//! which delays or drops it as the elements of [`sweetspot_path`] decide: rate, queue, delay, loss and jitter,
//! separately for each direction. The fate of a packet depends on the kernel's arrival timestamp, not on the time at
//! which this process handles the packet. A busy machine can only release packets late. The [`Certificate`] at the end
//! of every emulation shows how late.
//!
//! **Sizes.** Rates, buffers and counters count IP packets; Ethernet's 14-byte header is not part of the path. All
//! offloads of the devices are off, so packets are no longer than the MTU and carry real checksums.
//!
//! **Above 100,000 packets a second**, the devices use segmentation offload, because single packets would cost too much
//! CPU time. The hosts send super-frames, which this process splits into packets, as a network card does. The path
//! still decides about each packet. Packets of a flow that are due at the same time reach the other host merged, as
//! from a network card. This needs Linux 6.2 and root outside user namespaces. Captures in the namespaces look like
//! captures on hosts with such cards.
//!
//! **Flows with different round trips.** Each side can have further hosts, in pairs ([`HostPair`]). The flows of a
//! pair share the bottleneck and have their own propagation delay, initial window and ACK frequency.
//!
//! **Middleboxes.** A [`Middlebox`] in front of either direction can drop large packets silently, shift sequence
//! numbers, or strip TCP options.
//!
//! # Example
//!
//! Runs a command at the near end of a path. This needs root or user namespaces, and a single-threaded process:
//!
//! ```no_run
//! use std::process::Command;
//!
//! use sweetspot_emulator::{Emulation, EmulatorError, isolate};
//! use sweetspot_path::PathSpec;
//!
//! fn ping(path: &PathSpec) -> Result<(), EmulatorError> {
//!     let emulation = Emulation::start(path)?;
//!     // SWEETSPOT_FAR holds the far side's address.
//!     let mut command = Command::new("sh");
//!     command.args(["-c", "ping -c 3 $SWEETSPOT_FAR"]);
//!     let mut child = emulation.near().spawn(&mut command)?;
//!     child.wait().expect("the child was not waited for yet");
//!     println!("{}", emulation.finish()?);
//!     Ok(())
//! }
//!
//! let path: PathSpec = "rate=100Mbit/s rtt=40ms buffer=500kB".parse()?;
//! let code = isolate(|| u8::from(ping(&path).is_err()))?;
//! assert_eq!(code, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Several emulations can run one after another in the same process.

mod certificate;
mod checksum;
mod counters;
mod emulation;
mod error;
mod host_pair;
mod lateness;
mod middlebox;
mod packet_loop;
mod path_direction;
mod pool;
mod relay;
mod segmentation;
mod self_test;
mod serial;
mod series;
mod side;
mod sleep_monitor;
mod steering;
mod verdict;
mod veth;
mod wake_up;

pub use certificate::{
    Certificate, DirectionCertificate, LatenessBucket, LatenessCertificate, MachineLosses,
};
pub use emulation::Emulation;
pub use error::{EmulatorError, MAX_HOST_PAIRS};
pub use host_pair::HostPair;
pub use lateness::Lateness;
pub use middlebox::{Middlebox, StrippedOption};
pub use self_test::{DelayError, RateTrial, SelfTest, rehearse, self_test};
pub use series::{DirectionSample, PathSample};
pub use side::Side;
pub use sweetspot_linux::isolation::{IsolationError, isolate};
pub use verdict::CertificateVerdict;
