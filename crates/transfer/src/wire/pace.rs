//! Applications that are slower than their connection.

use std::fmt::Debug;
use std::net::TcpStream;
use std::os::fd::AsFd;

use sweetspot_linux::clock;
use sweetspot_linux::event_fd::{is_readable, wait_readable};
use sweetspot_units::{Bytes, Duration, Time};

/// How long a read waits for something to arrive before it looks at what else there is.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// An application that is slower than its connection: how much of what is there it reads or writes, and when. It is
/// asked before each read of the socket, or write to it, so that what counts is bytes of TCP, TLS and messages
/// included.
pub trait ApplicationPace: Debug + Send + Sync {
    /// How much it moves at `now`. `idle`: up to now there was nothing to be moved.
    fn poll_allowance(&self, now: Time, idle: bool) -> Allowance;

    /// So much of that was moved.
    fn handle_moved(&self, bytes: Bytes);
}

/// The size of one read or write of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// At most this many bytes; not zero.
    Bytes(Bytes),
    /// Nothing before this time.
    Nothing {
        /// When to ask again.
        until: Time,
    },
}

/// Waits until `pace` writes, and says how much of `length` bytes.
pub(crate) fn wait_to_write(pace: &dyn ApplicationPace, length: usize) -> usize {
    wait(pace, length, false)
}

/// Waits until `pace` reads, and says how much of `length` bytes; 0 if nothing arrived for a while.
pub(crate) fn wait_to_read(pace: &dyn ApplicationPace, socket: &TcpStream, length: usize) -> usize {
    let idle = !is_readable(socket.as_fd());
    if idle {
        // An error of the wait is one of the read that follows.
        let _ = wait_readable(&[socket.as_fd()], clock::now() + LOOK_INTERVAL);
        if !is_readable(socket.as_fd()) {
            return 0;
        }
    }
    wait(pace, length, idle)
}

fn wait(pace: &dyn ApplicationPace, length: usize, mut idle: bool) -> usize {
    loop {
        match pace.poll_allowance(clock::now(), idle) {
            Allowance::Bytes(max) => return length.min(max.get() as usize),
            Allowance::Nothing { until } => clock::sleep_until(until),
        }
        idle = false;
    }
}
