//! Watches and steers live connections of unmodified programs.
//!
//! Pure: [`share`] divides windows max-min fair, [`PathGroup`] steers all connections between two
//! hosts by one controller, [`upload::Upload`] a connection's pace by another, [`Event`] says what was
//! done.
//! At the edge of the kernel: [`Scope`] finds connections, [`Tuner`] looks at them and acts,
//! `guard` undoes it all when the tuner dies.

mod clamp_check;
mod connection;
mod error;
mod event;
mod exporter;
mod goal;
mod guard;
mod host;
mod look;
mod metrics;
mod path;
mod path_cache;
mod path_group;
pub mod policy;
mod scope;
pub mod share;
mod tuner;
pub mod upload;

pub use error::{TuneError, Untunable};
pub use event::{Change, ConnectionOwner, Event, Kind};
pub use exporter::Exporter;
pub use goal::Goal;
pub use guard::{Leases, guarded};
pub use host::Host;
pub use metrics::Snapshot;
pub use path_group::{Action, ConnectionSample, PathGroup, Refusal};
pub use scope::{Family, Found, Scope};
pub use tuner::{Options, Tuner};
