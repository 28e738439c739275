//! Applications that are slower than their connection.

use std::fmt::Debug;
use std::net::TcpStream;
use std::os::fd::AsFd;

use sweetspot_linux::clock;
use sweetspot_linux::event_fd::{is_readable, wait_readable};
use sweetspot_units::{Bytes, Duration, Time};

/// How long a read waits for data before it returns without any.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// An application that is slower than its connection: when and how much of the available data it reads or writes.
/// It is asked before each read or write of the socket, so its bytes include the overhead of TLS and messages.
pub trait ApplicationPace: Debug + Send + Sync {
    /// The amount to move at `now`. `idle`: there was nothing to move since the last call.
    fn poll_allowance(&self, now: Time, idle: bool) -> Allowance;

    /// Reports that `bytes` were moved.
    fn handle_moved(&self, bytes: Bytes);
}

/// The allowed size of one read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// At most this many bytes; never zero.
    Bytes(Bytes),
    /// Nothing yet.
    Nothing {
        /// When to ask again.
        until: Time,
    },
}

/// Waits until `pace` allows a write. Returns its size, at most `length` bytes.
pub(crate) fn wait_to_write(pace: &dyn ApplicationPace, length: usize) -> usize {
    wait(pace, length, false)
}

/// Waits until `pace` allows a read. Returns its size, at most `length` bytes; 0 if no data arrived for a while.
pub(crate) fn wait_to_read(pace: &dyn ApplicationPace, socket: &TcpStream, length: usize) -> usize {
    let idle = !is_readable(socket.as_fd());
    if idle {
        // The following read reports any error of this wait.
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
