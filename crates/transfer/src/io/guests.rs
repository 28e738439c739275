use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;

use super::channel::lock;

/// Everybody connected to a server: how many have proved nothing yet, and how to send all away.
#[derive(Default)]
pub(crate) struct Guests(Mutex<Present>);

#[derive(Default)]
struct Present {
    sockets: Vec<(u64, TcpStream)>,
    next: u64,
    strangers: usize,
    closing: bool,
}

/// Strangers that may be at the door at once: each costs a thread and a TLS handshake.
const STRANGERS: usize = 32;

impl Guests {
    /// Lets a stranger in, under a number; `None` if there are too many, or the house closes.
    pub fn enter(&self, socket: &TcpStream) -> Option<u64> {
        let mut present = lock(&self.0);
        if present.closing || present.strangers >= STRANGERS {
            return None;
        }
        let number = present.next;
        present.sockets.push((number, socket.try_clone().ok()?));
        present.next += 1;
        present.strangers += 1;
        Some(number)
    }

    /// A stranger proved its ticket, or was turned away.
    pub fn known(&self) {
        lock(&self.0).strangers -= 1;
    }

    /// The guest of that number left.
    pub fn leave(&self, number: u64) {
        lock(&self.0).sockets.retain(|(other, _)| *other != number);
    }

    /// Sends everybody away, and lets nobody in any more.
    pub fn close(&self) {
        let mut present = lock(&self.0);
        present.closing = true;
        for (_, socket) in &present.sockets {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Whether the house closes.
    pub fn is_closing(&self) -> bool {
        lock(&self.0).closing
    }
}
