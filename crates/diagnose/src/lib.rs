//! Finds the limit of a TCP connection: classes, a rule for each, and verdicts in words.
//!
//! The classes follow Y. Zhang, L. Breslau, V. Paxson, S. Shenker, "On the Characteristics and Origins of Internet Flow
//! Rates", SIGCOMM 2002 (T-RAT); two of them are split because the fixes differ. There are two sources of facts: a
//! capture ([`capture`]) and the kernel's counters of a live connection ([`live`]). Both divide time among the classes
//! ([`Limits`]); the class with the most time is the [`LimitVerdict`].
//!
//! The named limit always accounts for the measured rate:
//!
//! ```
//! use sweetspot_diagnose::{Class, Evidence, LimitVerdict, Limits};
//! use sweetspot_units::{Bytes, Duration, Rate};
//!
//! let limits = Limits::only(Class::ReceiverWindow, Duration::from_secs(10));
//! let mut evidence = Evidence::default();
//! evidence.goodput = Rate::from_mbit_per_second(6);
//! evidence.window = Some(Bytes::new(65_535));
//! evidence.rtt = Some(Duration::from_millis(80));
//! // 65,535 bytes per 80 ms is 6.6 Mbit/s.
//! assert_eq!(LimitVerdict::new(&limits, &evidence).class, Class::ReceiverWindow);
//! evidence.goodput = Rate::from_mbit_per_second(1);
//! assert_eq!(LimitVerdict::new(&limits, &evidence).class, Class::Unknown);
//! ```
//!
//! The crate is pure: it reads no clock and touches no operating system.

pub mod capture;
mod clamp;
mod class;
mod evidence;
mod explained;
mod facts;
mod fix;
mod flow;
pub mod following;
mod gain;
pub mod joined;
mod limits;
pub mod live;
pub mod page;
pub mod path;
mod quantities;
pub mod recorded;
mod remarks;
pub mod report;
mod shared;
mod unscaled;
mod verdict;
mod words;

pub use clamp::WindowClamp;
pub use class::Class;
pub use evidence::{Arrivals, Evidence, Failure, HostBuffer, Nagle, Reader, SharedPath, Stall};
pub use facts::{Facts, RetransmissionFacts, RttFacts, WindowFacts};
pub use flow::{ApplicationTime, CaptureExtent, Flow, SENDER_OR_PATH};
pub use limits::{Limits, percent};
pub use quantities::{counted, in_rate};
pub use shared::{have_filling_neighbours, name_shared_paths};
pub use verdict::{LimitVerdict, NamedLimit};
