//! Watches the live TCP connections of a host from outside: the processes that own them, and the
//! limit of each. Also reads the host's settings.
//!
//! ```
//! use sweetspot_linux::diag::Detail;
//! use sweetspot_watch::{ConnectionList, NamespaceConnections};
//! use sweetspot_units::Time;
//!
//! let mut host = NamespaceConnections::own()?;
//! let mut list = ConnectionList::default();
//! list.handle(Time::ZERO, host.read(Detail::ALL)?);
//! for row in list.rows() {
//!     println!("{}: {}", row.connection.remote, row.limited_by());
//! }
//! # Ok::<(), sweetspot_watch::HostError>(())
//! ```

mod clamp;
mod diagnosis;
mod error;
mod host;
mod locked;
mod owners;
mod sample;
mod settings;
mod table;

pub use clamp::window_clamp;
pub use diagnosis::diagnosis;
pub use error::HostError;
pub use host::NamespaceConnections;
pub use owners::{Owner, Owners};
pub use sample::sample;
pub use settings::settings;
pub use table::{ConnectionList, ConnectionRow, MEASURING, limited_by, limited_by_briefly};
