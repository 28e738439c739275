//! What limits a TCP connection: classes, a rule for each, and verdicts in words.
//!
//! The classes are those of Y. Zhang, L. Breslau, V. Paxson, S. Shenker, "On the Characteristics
//! and Origins of Internet Flow Rates", SIGCOMM 2002 (T-RAT), two of them divided where the fix
//! differs. There are two sources of facts: a capture ([`capture`]) and the kernel's own account
//! of a live connection ([`live`]). Both divide time among the classes ([`Limits`]); the class
//! with the most time is the [`Verdict`].
//!
//! The crate is pure: it reads no clock and touches no operating system.

pub mod capture;
mod class;
mod flow;
mod limits;
pub mod live;
mod verdict;
mod words;

pub use class::Class;
pub use flow::Flow;
pub use limits::Limits;
pub use verdict::{Evidence, Verdict};
