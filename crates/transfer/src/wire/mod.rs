//! One authenticated connection: TLS, the peer's identity, frames in and out, and the paces and limits of its reads and writes.
//! This module knows nothing of files.

pub mod channel;
pub mod frame_reader;
mod handshake;
pub mod identity;
pub mod link;
pub mod over;
pub mod pace;
pub mod spoken;
pub mod stall;
