//! Lists the TCP connections of a network namespace with the kernel's statistics of each (sock_diag(7),
//! include/uapi/linux/inet_diag.h). This needs no privilege.

mod connection;

pub use connection::{DiagConnection, SocketMemory, TcpState};

use std::io;
use std::net::SocketAddr;

use netlink_packet_core::NLM_F_DUMP;
use rustix::net::netlink::SOCK_DIAG;

use crate::netlink::Netlink;
use connection::{INET_DIAG_CONG, INET_DIAG_INFO, INET_DIAG_SKMEMINFO};

/// include/uapi/linux/sock_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;

/// The data to read about each connection besides its addresses. Each part adds a small cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Detail {
    /// Whether to read `TCP_INFO`.
    pub info: bool,
    /// Whether to read the sender's congestion control.
    pub congestion: bool,
    /// Whether to read the memory used by the socket's buffers.
    pub memory: bool,
}

impl Detail {
    /// Only the addresses.
    pub const NONE: Detail = Detail { info: false, congestion: false, memory: false };
    /// Everything.
    pub const ALL: Detail = Detail { info: true, congestion: true, memory: true };

    fn extensions(self) -> u8 {
        // A request has bit n - 1 set for extension n (include/uapi/linux/inet_diag.h).
        let bit = |requested: bool, extension: u16| u8::from(requested) << (extension - 1);
        bit(self.info, INET_DIAG_INFO)
            | bit(self.congestion, INET_DIAG_CONG)
            | bit(self.memory, INET_DIAG_SKMEMINFO)
    }
}

/// A sock_diag socket, which reads the connections of the network namespace in which it was opened. For another
/// namespace open it in [`NetworkNamespace::run`](crate::namespace::NetworkNamespace::run).
#[derive(Debug)]
pub struct Diag {
    netlink: Netlink,
}

impl Diag {
    /// Opens a socket in the namespace of the calling thread.
    pub fn open() -> io::Result<Diag> {
        Netlink::open(Some(SOCK_DIAG)).map(|netlink| Diag { netlink })
    }

    /// Passes every connection in one of `states` to `visit`, IPv4 first. A connection that begins or ends in the
    /// meantime may be missed or visited twice. The error is `NotFound` on a kernel without inet_diag.
    pub fn connections(
        &mut self,
        states: &[TcpState],
        detail: Detail,
        mut visit: impl FnMut(DiagConnection),
    ) -> io::Result<()> {
        let mask = states.iter().fold(0, |mask, state| mask | state.bit());
        for family in [libc::AF_INET, libc::AF_INET6] {
            let request = request(family as u8, detail, mask, &[0; connection::SOCKID_BYTES]);
            self.netlink.query(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &request, &mut |_, message| {
                if let Some(connection) = DiagConnection::parse(message) {
                    visit(connection);
                }
            })?;
        }
        Ok(())
    }

    /// Reads a previously seen connection again; `None` if it is gone.
    pub fn find(
        &mut self,
        seen: &DiagConnection,
        detail: Detail,
    ) -> io::Result<Option<DiagConnection>> {
        let request = request(seen.family, detail, u32::MAX, &seen.identity());
        let mut found = None;
        let answer = self.netlink.query(SOCK_DIAG_BY_FAMILY, 0, &request, &mut |_, message| {
            found = DiagConnection::parse(message);
        });
        match answer.map_err(|e| (e.raw_os_error(), e)) {
            Ok(()) => Ok(found),
            // ESTALE: the addresses now belong to a connection with another cookie.
            Err((Some(libc::ENOENT | libc::ESTALE), _)) => Ok(None),
            Err((_, error)) => Err(error),
        }
    }
}

/// `struct inet_diag_req_v2`.
fn request(family: u8, detail: Detail, states: u32, identity: &[u8]) -> Vec<u8> {
    let mut r = vec![family, libc::IPPROTO_TCP as u8, detail.extensions(), 0];
    r.extend(states.to_ne_bytes());
    r.extend(identity);
    r
}

/// The address as other programs write it: an IPv4-mapped IPv6 address becomes IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::options;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn pair(listen: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(listen).unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn find_by_ports(client: &TcpStream, detail: Detail) -> DiagConnection {
        let (local, remote) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
        let mut found = None;
        let mut diag = Diag::open().unwrap();
        diag.connections(&[TcpState::Established], detail, |c| {
            if c.local.port() == local.port() && c.remote.port() == remote.port() {
                found = Some(c);
            }
        })
        .unwrap();
        found.expect("the connection is in the table")
    }

    #[test]
    fn a_connection_is_listed_with_all_requested_details() {
        let (mut client, mut server) = pair("127.0.0.1:0");
        client.write_all(&[1; 10_000]).unwrap();
        server.read_exact(&mut [0; 10_000]).unwrap();
        let seen = find_by_ports(&server, Detail::ALL);
        assert_eq!(seen.local, server.local_addr().unwrap());
        assert_eq!(seen.remote, client.local_addr().unwrap());
        assert_eq!(seen.cookie, options::cookie(&server).unwrap());
        assert_eq!(seen.info.unwrap().bytes_received.get(), 10_000);
        assert_eq!(seen.congestion, Some(options::congestion(&server).unwrap()));
        let memory = seen.memory.unwrap();
        assert_eq!(memory.receive_buffer, options::receive_buffer(&server).unwrap());
        assert_eq!(memory.send_buffer, options::send_buffer(&server).unwrap());
    }

    #[test]
    fn unrequested_details_are_not_read() {
        let (client, _far) = pair("127.0.0.1:0");
        let seen = find_by_ports(&client, Detail::NONE);
        assert_eq!((seen.info, seen.congestion, seen.memory), (None, None, None));
    }

    #[test]
    fn unread_bytes_are_counted_on_the_receiving_side() {
        let (mut client, server) = pair("127.0.0.1:0");
        client.write_all(&[1; 777]).unwrap();
        server.peek(&mut [0; 777]).unwrap();
        assert_eq!(find_by_ports(&server, Detail::NONE).unread.get(), 777);
    }

    #[test]
    fn a_connection_can_be_found_again_until_it_closes() {
        let mut diag = Diag::open().unwrap();
        // A dual-stack listener's connection is an IPv6 one with an IPv4-mapped address.
        for listen in ["127.0.0.1:0", "[::]:0"] {
            let (client, server) = pair(listen);
            let seen = find_by_ports(&server, Detail::NONE);
            assert_eq!(seen.remote, client.local_addr().unwrap());
            let again = diag.find(&seen, Detail::ALL).unwrap().unwrap();
            assert_eq!((again.cookie, again.inode), (seen.cookie, seen.inode));
            assert!(again.info.is_some());
            let other = DiagConnection { cookie: seen.cookie + 1, ..seen.clone() };
            assert_eq!(diag.find(&other, Detail::NONE).unwrap(), None);
            drop((client, server));
            let state = diag.find(&seen, Detail::NONE).unwrap().map(|c| c.state);
            assert!(state != Some(TcpState::Established), "{state:?}");
        }
    }
}
