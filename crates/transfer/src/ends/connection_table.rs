use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::Mutex;

use crate::limits::MAX_PER_NETWORK;
use crate::lock::lock;

/// The connections of a server. Limits the unauthenticated ones, and can close all.
pub(crate) struct ConnectionTable {
    present: Mutex<Present>,
    /// Maximum unauthenticated connections at once.
    max: usize,
}

#[derive(Default)]
struct Present {
    /// In order of arrival.
    connections: Vec<Connection>,
    next: u64,
    closing: bool,
}

struct Connection {
    number: u64,
    socket: TcpStream,
    network: [u8; 8],
    authenticated: bool,
    /// Whether it was dropped to free a place; its thread has not noticed yet.
    dropped: bool,
}

impl ConnectionTable {
    /// A table for at most `max` unauthenticated connections.
    pub fn new(max: usize) -> ConnectionTable {
        ConnectionTable { present: Mutex::default(), max }
    }

    /// Adds an unauthenticated connection and returns its number; `None` if the server is closing, or cannot keep up.
    /// If there are too many, drops the oldest: an honest peer authenticates within a few round trips, so the longest
    /// wait is most likely an attacker's.
    pub fn enter(&self, socket: &TcpStream) -> Option<u64> {
        let mut present = lock(&self.present);
        let dropped = present.connections.iter().filter(|connection| connection.dropped).count();
        if present.closing || dropped >= self.max {
            return None;
        }
        let network = socket.peer_addr().map_or([0; 8], |peer| network(peer.ip()));
        let crowded = {
            let unproven = present.connections.iter().enumerate();
            let unproven: Vec<_> =
                unproven.filter(|(_, c)| !c.authenticated && !c.dropped).collect();
            let from_there = || unproven.iter().filter(|(_, c)| c.network == network);
            if from_there().count() >= MAX_PER_NETWORK {
                from_there().next().map(|(i, _)| *i)
            } else if unproven.len() >= self.max {
                unproven.first().map(|(i, _)| *i)
            } else {
                None
            }
        };
        let (number, socket) = (present.next, socket.try_clone().ok()?);
        if let Some(oldest) = crowded {
            let oldest = &mut present.connections[oldest];
            oldest.dropped = true;
            let _ = oldest.socket.shutdown(Shutdown::Both);
        }
        let (authenticated, dropped) = (false, false);
        let entered = Connection { number, socket, network, authenticated, dropped };
        present.connections.push(entered);
        present.next += 1;
        Some(number)
    }

    pub fn authenticated(&self, number: u64) {
        let mut present = lock(&self.present);
        let found = present.connections.iter_mut().find(|connection| connection.number == number);
        if let Some(connection) = found {
            connection.authenticated = true;
        }
    }

    /// Whether an admitted peer's connection is still being served.
    pub fn has_authenticated(&self) -> bool {
        lock(&self.present).connections.iter().any(|connection| connection.authenticated)
    }

    pub fn leave(&self, number: u64) {
        lock(&self.present).connections.retain(|connection| connection.number != number);
    }

    /// Stops accepting connections, and closes the unauthenticated ones.
    pub fn begin_closing(&self) {
        self.close_if(|connection| !connection.authenticated);
    }

    /// Stops accepting connections, and closes all.
    pub fn close(&self) {
        self.close_if(|_| true);
    }

    fn close_if(&self, ends: impl Fn(&Connection) -> bool) {
        let mut present = lock(&self.present);
        present.closing = true;
        for connection in present.connections.iter().filter(|connection| ends(connection)) {
            let _ = connection.socket.shutdown(Shutdown::Both);
        }
    }

    pub fn is_closing(&self) -> bool {
        lock(&self.present).closing
    }
}

fn network(ip: IpAddr) -> [u8; 8] {
    let mut network = [0; 8];
    match ip.to_canonical() {
        IpAddr::V4(ip) => network[4..].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => network.copy_from_slice(&ip.octets()[..8]),
    }
    network
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    #[test]
    fn a_newcomer_replaces_the_oldest_unauthenticated_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let table = ConnectionTable::new(256);
        let connect = || {
            let peer = TcpStream::connect(address).unwrap();
            (peer, table.enter(&listener.accept().unwrap().0).unwrap())
        };
        let (_proven, number) = connect();
        table.authenticated(number);
        let mut unauthenticated: Vec<_> = (0..MAX_PER_NETWORK).map(|_| connect()).collect();
        unauthenticated[0].0.set_nonblocking(true).unwrap();
        let mut byte = [0];
        assert!(unauthenticated[0].0.read(&mut byte).is_err(), "it waits");
        let _newcomer = connect();
        unauthenticated[0].0.set_nonblocking(false).unwrap();
        assert_eq!(unauthenticated[0].0.read(&mut byte).unwrap(), 0, "it was dropped");
        let present = lock(&table.present);
        let kept: Vec<_> = present.connections.iter().filter(|c| !c.dropped).collect();
        assert_eq!(kept.len(), MAX_PER_NETWORK + 1);
        assert!(kept[0].authenticated, "a proven peer stays");
    }

    #[test]
    fn unauthenticated_connections_that_outpace_cleanup_are_rejected() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (table, max) = (ConnectionTable::new(4), 4);
        let connect = || {
            let peer = TcpStream::connect(address).unwrap();
            (peer, table.enter(&listener.accept().unwrap().0))
        };
        // No thread notices that its connection was dropped: the table drops `max` more, and then rejects.
        let unauthenticated: Vec<_> = (0..2 * max).map(|_| connect()).collect();
        assert!(unauthenticated.iter().all(|(_, number)| number.is_some()));
        assert_eq!(connect().1, None);
        assert_eq!(lock(&table.present).connections.len(), 2 * max);
        table.leave(unauthenticated[0].1.unwrap());
        assert!(connect().1.is_some());
    }

    #[test]
    fn addresses_of_one_network_count_together() {
        let network = |text: &str| network(text.parse().unwrap());
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::9"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
        assert_eq!(network("192.0.2.1"), network("::ffff:192.0.2.1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }
}
