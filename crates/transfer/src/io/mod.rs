//! The protocol's I/O: blocking threads around the pure parts.

mod admission;
mod answering;
mod channel;
mod congestion;
mod delivery;
mod guests;
mod helm;
mod identity;
mod partial;
mod receiver;
mod room;
pub mod sender;
pub mod server;
mod sink;
mod source;
mod stream;
mod switchboard;
mod talk;
