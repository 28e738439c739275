//! The open connections of a server. Other users of this machine can connect, too, and must not block the server for
//! its owner. A new client replaces the oldest one that has not been admitted.

use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number of simultaneous connections; a browser opens six.
const MAX_CONNECTIONS: usize = 64;

/// The open connections.
#[derive(Debug, Default)]
pub struct Connections {
    open: Mutex<Open>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Open {
    count: usize,
    next: u64,
    /// The connections that have not been admitted, oldest first.
    unadmitted: VecDeque<(u64, TcpStream)>,
}

impl Connections {
    /// Takes a place for `stream`, by disconnecting the oldest connection that was not admitted if necessary.
    ///
    /// # Errors
    /// If no descriptor is left.
    pub fn enter(self: &Arc<Self>, stream: &TcpStream) -> io::Result<Place> {
        let stranger = stream.try_clone()?;
        let mut open = self.lock();
        while open.count >= MAX_CONNECTIONS {
            if let Some((_, oldest)) = open.unadmitted.pop_front() {
                // Its thread then reads EOF and frees the place, or has already ended.
                let _ = oldest.shutdown(Shutdown::Both);
            }
            open = self.freed.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
        let number = open.next;
        open.next += 1;
        open.count += 1;
        open.unadmitted.push_back((number, stranger));
        Ok(Place { connections: Arc::clone(self), number })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(open: &mut Open, number: u64) {
        open.unadmitted.retain(|(stranger, _)| *stranger != number);
    }
}

/// A counted place among the open connections, freed on drop.
#[derive(Debug)]
pub struct Place {
    connections: Arc<Connections>,
    number: u64,
}

impl Place {
    /// Keeps the place until its connection ends, because the client was admitted.
    pub fn keep(&self) {
        Connections::forget(&mut self.connections.lock(), self.number);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.connections.lock();
        Connections::forget(&mut open, self.number);
        open.count -= 1;
        drop(open);
        self.connections.freed.notify_one();
    }
}
