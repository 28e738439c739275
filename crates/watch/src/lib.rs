//! The live TCP connections of a host, watched from outside: the processes that own them, and what
//! limits each.

mod host;
mod owners;
mod sample;
mod table;

pub use host::NamespaceConnections;
pub use sample::sample;
pub use table::{ConnectionList, ConnectionRow};
