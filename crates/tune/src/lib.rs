//! Watches and steers live connections of unmodified programs.
//!
//! Pure: [`share`] divides windows max-min fair, [`Bundle`] steers all connections between two
//! hosts by one controller, [`Event`] says what was done. At the edge of the kernel: [`Scope`]
//! finds connections, [`Tuner`] looks at them and acts, `guard` undoes it all when the tuner
//! dies.

mod bundle;
mod error;
mod event;
mod exporter;
mod guard;
mod host;
mod look;
mod metrics;
pub mod policy;
mod scope;
pub mod share;
mod tuner;
mod upload;

pub use bundle::{Action, Bundle, Look};
pub use error::TuneError;
pub use event::{Event, Kind, Who};
pub use exporter::Exporter;
pub use guard::{Leases, guarded};
pub use host::Host;
pub use metrics::Snapshot;
pub use scope::{Family, Found, Scope};
pub use tuner::{Goal, Options, Tuner};
