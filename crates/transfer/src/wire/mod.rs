//! One authenticated connection: TLS, the peer's identity, frames in both directions, and the rates and limits of its
//! reads and writes. This module knows nothing about files.

pub mod channel;
pub mod end_signal;
mod first_segments;
pub mod frame_reader;
mod handshake;
pub mod identity;
pub mod link;
pub mod pace;
pub mod spoken;
pub mod stall;
