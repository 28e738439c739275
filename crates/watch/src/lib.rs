//! The live connections of a host, watched from outside: who has them, what limits each.

mod host;
mod owners;
mod sample;
mod table;

pub use host::NamespaceConnections;
pub use sample::sample;
pub use table::{ConnectionList, ConnectionRow};
