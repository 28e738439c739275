//! What limits a TCP connection: classes, a rule for each, and verdicts in words.
//!
//! The classes are those of Y. Zhang, L. Breslau, V. Paxson, S. Shenker, "On the Characteristics
//! and Origins of Internet Flow Rates", SIGCOMM 2002 (T-RAT), two of them divided where the fix
//! differs. There are two sources of facts: a capture ([`capture`]) and the kernel's own account
//! of a live connection ([`live`]). Both divide time among the classes ([`Limits`]); the class
//! with the most time is the [`LimitVerdict`].
//!
//! The crate is pure: it reads no clock and touches no operating system.

pub mod capture;
mod class;
mod explained;
mod facts;
mod flow;
mod limits;
pub mod live;
pub mod page;
pub mod recorded;
mod remarks;
mod verdict;
mod words;

pub use class::Class;
pub use facts::{Facts, ResentFacts, RttFacts, WindowFacts};
pub use flow::{ApplicationTime, Flow, Seen};
pub use limits::Limits;
pub use verdict::{Evidence, Failure, LimitVerdict, Stall};
