//! Experiments on this machine's own kernel, across an emulated path between network namespaces.
//!
//! Every experiment runs in an isolated process tree ([`isolated`]) that dies as a whole, changes
//! no setting of the host, and comes back with the emulator's [`Certificate`].

pub mod blog;
mod certificate;
mod error;
mod isolated;
mod settings;

pub use certificate::Certificate;
pub use error::LabError;
pub use isolated::isolated;
