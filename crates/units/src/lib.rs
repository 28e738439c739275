//! Quantities as types: [`Rate`], [`Bytes`], [`Time`], [`Deadline`], [`Duration`], [`Probability`] and [`Volume`].
//!
//! Every public interface of Sweetspot uses this crate, so no number crosses an interface without its unit. The
//! types have only the arithmetic that their dimensions allow: `Rate * Duration = Bytes`, `Bytes / Rate =
//! Duration`, `Bytes / Duration = Rate`. Text always contains the unit. 1 kB is 1000 B, as in the papers; 1024 B
//! is 1 KiB. The crate reads no clock and does not touch the operating system.
//!
//! # Example
//!
//! The bandwidth-delay product of a path:
//!
//! ```
//! use sweetspot_units::{Bytes, Duration, Rate};
//!
//! let rate: Rate = "100Mbit/s".parse()?;
//! let rtt: Duration = "40ms".parse()?;
//! let bdp: Bytes = rate * rtt;
//! assert_eq!(bdp.to_string(), "500 kB");
//! assert_eq!(bdp / rate, rtt);
//!
//! let error = "100".parse::<Rate>().unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "\"100\" is not a rate: it has no unit; write it like 20Mbit/s, 1.5Gbit/s, 12.5MB/s"
//! );
//! # Ok::<(), sweetspot_units::UnitError>(())
//! ```

mod buffer_size;
mod bytes;
mod deadline;
mod error;
mod grouped;
mod line_break;
mod notation;
mod probability;
mod rate;
mod ratio;
mod significant;
mod time;
mod volume;

pub use buffer_size::BufferSize;
pub use bytes::Bytes;
pub use deadline::Deadline;
pub use error::UnitError;
pub use grouped::grouped;
pub use line_break::parts_unit;
pub use probability::Probability;
pub use rate::Rate;
pub use significant::{Percent, Significant, rounded};
pub use time::{Duration, Time};
pub use volume::Volume;
