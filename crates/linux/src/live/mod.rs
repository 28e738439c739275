//! Sockets of other processes, borrowed for each sample or action (pidfd_getfd(2)), and sockets owned by other parts
//! of this process ([`OwnSocket`]).
//!
//! While a descriptor is borrowed, the program's `close` sends no FIN, so each loan lasts only microseconds. Each
//! time, inode and cookie are compared to verify that it is still the same socket.

mod activity_watch;
mod error;
mod own_socket;
mod process;
mod socket;

use std::io;
use std::os::fd::AsFd;

pub use activity_watch::ActivityWatch;
pub use error::BorrowError;
pub use own_socket::{LostSocket, OwnSocket, fork_generation};
pub use process::ProcessHandle;
pub use socket::LiveSocket;

/// The inode of an open file.
pub fn inode(file: impl AsFd) -> io::Result<u64> {
    Ok(rustix::fs::fstat(file)?.st_ino)
}
