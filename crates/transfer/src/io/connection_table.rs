use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;

use super::channel::lock;

/// The connections of a server: counts the unauthenticated ones, and can close all.
#[derive(Default)]
pub(crate) struct ConnectionTable(Mutex<Present>);

#[derive(Default)]
struct Present {
    sockets: Vec<(u64, TcpStream)>,
    next: u64,
    unauthenticated: usize,
    closing: bool,
}

/// The most unauthenticated connections at once. Each costs a thread and a TLS handshake.
const MAX_UNAUTHENTICATED: usize = 32;

impl ConnectionTable {
    /// Adds an unauthenticated connection and returns its number; `None` if there are too many or the server closes.
    pub fn enter(&self, socket: &TcpStream) -> Option<u64> {
        let mut present = lock(&self.0);
        if present.closing || present.unauthenticated >= MAX_UNAUTHENTICATED {
            return None;
        }
        let number = present.next;
        present.sockets.push((number, socket.try_clone().ok()?));
        present.next += 1;
        present.unauthenticated += 1;
        Some(number)
    }

    /// A connection was authenticated or refused.
    pub fn authenticated(&self) {
        lock(&self.0).unauthenticated -= 1;
    }

    /// The connection of that number ended.
    pub fn leave(&self, number: u64) {
        lock(&self.0).sockets.retain(|(other, _)| *other != number);
    }

    /// Closes all connections, and accepts no more.
    pub fn close(&self) {
        let mut present = lock(&self.0);
        present.closing = true;
        for (_, socket) in &present.sockets {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Whether the server closes.
    pub fn is_closing(&self) -> bool {
        lock(&self.0).closing
    }
}
