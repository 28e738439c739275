use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::Mutex;

use super::channel::lock;

/// The connections of a server: limits the unauthenticated ones, and can close all.
#[derive(Default)]
pub(crate) struct ConnectionTable(Mutex<Present>);

#[derive(Default)]
struct Present {
    /// In the order in which they came.
    connections: Vec<Connection>,
    next: u64,
    closing: bool,
}

struct Connection {
    number: u64,
    socket: TcpStream,
    network: [u8; 8],
    authenticated: bool,
}

/// The most unauthenticated connections at once. Each costs a thread and a TLS handshake.
const MAX_UNAUTHENTICATED: usize = 256;
/// The most of them from one network: an IPv4 address, or an IPv6 prefix of 64 bits.
const MAX_PER_NETWORK: usize = 32;

impl ConnectionTable {
    /// Adds an unauthenticated connection and returns its number; `None` if the server closes. Where there are too
    /// many, the one that has waited longest is dropped: an honest peer proves itself within a few round trips, so
    /// that the longest wait is that of a stranger.
    pub fn enter(&self, socket: &TcpStream) -> Option<u64> {
        let mut present = lock(&self.0);
        if present.closing {
            return None;
        }
        let network = socket.peer_addr().map_or([0; 8], |peer| network(peer.ip()));
        let unproven = |c: &&Connection| !c.authenticated;
        let from_there = |c: &&Connection| !c.authenticated && c.network == network;
        let crowded = if present.connections.iter().filter(from_there).count() >= MAX_PER_NETWORK {
            present.connections.iter().find(from_there)
        } else if present.connections.iter().filter(unproven).count() >= MAX_UNAUTHENTICATED {
            present.connections.iter().find(unproven)
        } else {
            None
        };
        if let Some(oldest) = crowded {
            let _ = oldest.socket.shutdown(Shutdown::Both);
            let number = oldest.number;
            present.connections.retain(|connection| connection.number != number);
        }
        let (number, socket) = (present.next, socket.try_clone().ok()?);
        present.connections.push(Connection { number, socket, network, authenticated: false });
        present.next += 1;
        Some(number)
    }

    /// A connection was authenticated.
    pub fn authenticated(&self, number: u64) {
        let mut present = lock(&self.0);
        let found = present.connections.iter_mut().find(|connection| connection.number == number);
        if let Some(connection) = found {
            connection.authenticated = true;
        }
    }

    /// The connection of that number ended.
    pub fn leave(&self, number: u64) {
        lock(&self.0).connections.retain(|connection| connection.number != number);
    }

    /// Closes all connections, and accepts no more.
    pub fn close(&self) {
        let mut present = lock(&self.0);
        present.closing = true;
        for connection in &present.connections {
            let _ = connection.socket.shutdown(Shutdown::Both);
        }
    }

    /// Whether the server closes.
    pub fn is_closing(&self) -> bool {
        lock(&self.0).closing
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
    fn a_newcomer_takes_the_place_of_who_has_waited_longest() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let table = ConnectionTable::default();
        let connect = || {
            let peer = TcpStream::connect(address).unwrap();
            (peer, table.enter(&listener.accept().unwrap().0).unwrap())
        };
        let (_proven, number) = connect();
        table.authenticated(number);
        let mut strangers: Vec<_> = (0..MAX_PER_NETWORK).map(|_| connect()).collect();
        strangers[0].0.set_nonblocking(true).unwrap();
        let mut byte = [0];
        assert!(strangers[0].0.read(&mut byte).is_err(), "it waits");
        let _newcomer = connect();
        strangers[0].0.set_nonblocking(false).unwrap();
        assert_eq!(strangers[0].0.read(&mut byte).unwrap(), 0, "it was dropped");
        let present = lock(&table.0);
        assert_eq!(present.connections.len(), MAX_PER_NETWORK + 1);
        assert!(present.connections[0].authenticated, "who is proven stays");
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
