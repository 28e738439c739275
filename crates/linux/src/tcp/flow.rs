//! Connections that only load a path, at low CPU cost: all sent data comes from one buffer, and received data is not
//! copied.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::LazyLock;

use socket2::{Domain, Protocol, Socket, Type};
use sweetspot_units::Bytes;

use super::options;

/// The bytes that every flow sends.
static FILLER: LazyLock<Vec<u8>> = LazyLock::new(|| vec![0; 1 << 17]);

/// How many connections may wait to be accepted.
const LISTEN_BACKLOG: i32 = 1024;

/// Socket options set before a socket connects or listens. `None` keeps the kernel's default.
#[derive(Debug, Clone, Default)]
pub struct FlowOptions {
    /// The congestion control.
    pub congestion: Option<String>,
    /// The largest window to advertise. Before the handshake this also selects the smallest window scale that can
    /// express it.
    pub window: Option<Bytes>,
    /// `SO_RCVBUF`.
    pub receive_buffer: Option<Bytes>,
    /// `SO_SNDBUF`.
    pub send_buffer: Option<Bytes>,
}

impl FlowOptions {
    fn apply(&self, socket: &Socket) -> io::Result<()> {
        if let Some(name) = &self.congestion {
            options::set_congestion(socket, name)?;
        }
        if let Some(size) = self.receive_buffer {
            options::set_receive_buffer(socket, size)?;
        }
        if let Some(size) = self.send_buffer {
            options::set_send_buffer(socket, size)?;
        }
        if let Some(window) = self.window {
            options::set_window_clamp(socket, window)?;
        }
        Ok(())
    }
}

/// One end of a non-blocking connection.
#[derive(Debug)]
pub struct Flow(Socket);

/// A non-blocking listener.
#[derive(Debug)]
pub struct Listener(Socket);

impl Listener {
    /// Listens on `address`. Accepted connections inherit `options`.
    pub fn open(address: SocketAddr, options: &FlowOptions) -> io::Result<Listener> {
        let socket = new_socket(address)?;
        socket.set_reuse_address(true)?;
        options.apply(&socket)?;
        socket.bind(&address.into())?;
        socket.listen(LISTEN_BACKLOG)?;
        Ok(Listener(socket))
    }

    /// The bound address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        let address = self.0.local_addr()?;
        address.as_socket().ok_or_else(|| io::Error::other("a socket without an address"))
    }

    /// The next connection; `None` if none waits.
    pub fn accept(&self) -> io::Result<Option<Flow>> {
        match self.0.accept() {
            Ok((socket, _)) => {
                socket.set_nonblocking(true)?;
                Ok(Some(Flow(socket)))
            }
            // A peer that aborted before its connection was accepted is not an error.
            Err(e) if matches!(e.kind(), io::ErrorKind::ConnectionAborted) => Ok(None),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(e),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Flow {
    /// Starts connecting. The flow becomes writable once it is connected; if it fails, epoll reports it as over.
    pub fn connect(to: SocketAddr, options: &FlowOptions) -> io::Result<Flow> {
        let socket = new_socket(to)?;
        // Filler is written in large pieces, and the last one must not wait for an ACK.
        socket.set_tcp_nodelay(true)?;
        options.apply(&socket)?;
        match socket.connect(&to.into()) {
            Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => Err(e),
            _ => Ok(Flow(socket)),
        }
    }

    /// Sends at most `max` bytes of filler and returns the number sent; zero if the send buffer is full.
    pub fn send(&self, max: Bytes) -> io::Result<Bytes> {
        let length = (max.get() as usize).min(FILLER.len());
        moved(self.0.send(&FILLER[..length]))
    }

    /// Discards at most `max` bytes of received data and returns the number: zero if the peer has closed, `None` if no data
    /// is waiting.
    pub fn discard(&self, max: Bytes) -> io::Result<Option<Bytes>> {
        // tcp(7): with MSG_TRUNC the received bytes are discarded, and the pointer is not used.
        // SAFETY: the kernel writes nothing through the null pointer.
        let n = unsafe {
            libc::recv(
                self.0.as_raw_fd(),
                std::ptr::null_mut(),
                max.get() as usize,
                libc::MSG_TRUNC,
            )
        };
        if n == 0 {
            return Ok(Some(Bytes::ZERO));
        }
        let n = usize::try_from(n).map_err(|_| io::Error::last_os_error());
        moved(n).map(|bytes| (bytes > Bytes::ZERO).then_some(bytes))
    }

    /// Closes the sending half.
    pub fn finish(&self) -> io::Result<()> {
        self.0.shutdown(Shutdown::Write)
    }

    /// Resets the connection, so that no state remains at either end.
    pub fn reset(self) {
        // If this fails, the connection is closed normally.
        let _ = self.0.set_linger(Some(std::time::Duration::ZERO));
    }
}

impl AsFd for Flow {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn new_socket(address: SocketAddr) -> io::Result<Socket> {
    let kind = Type::STREAM.nonblocking();
    Socket::new(Domain::for_address(address), kind, Some(Protocol::TCP))
}

/// The number of bytes that a call moved; zero if it would have blocked.
fn moved(result: io::Result<usize>) -> io::Result<Bytes> {
    match result {
        Ok(n) => Ok(Bytes::new(n as u64)),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(Bytes::ZERO)
        }
        // Not connected yet.
        Err(e) if e.kind() == io::ErrorKind::NotConnected => Ok(Bytes::ZERO),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::tcp::Info;
    use sweetspot_units::Duration;

    const ALL_THERE_IS: Bytes = Bytes::new(1 << 20);

    fn loopback(options: &FlowOptions) -> (Flow, Flow) {
        let listener = Listener::open(([127, 0, 0, 1], 0).into(), options).unwrap();
        let client = Flow::connect(listener.address().unwrap(), &FlowOptions::default()).unwrap();
        (client, eventually(|| listener.accept().unwrap()))
    }

    fn eventually<T>(mut tried: impl FnMut() -> Option<T>) -> T {
        let until = clock::now() + Duration::from_secs(5);
        while clock::now() < until {
            if let Some(done) = tried() {
                return done;
            }
            clock::sleep_until(clock::now() + Duration::from_millis(1));
        }
        panic!("given up");
    }

    #[test]
    fn the_receiver_discards_every_byte_sent() {
        let (client, server) = loopback(&FlowOptions::default());
        assert_eq!(server.discard(ALL_THERE_IS).unwrap(), None);
        let sent = client.send(Bytes::new(100_000)).unwrap();
        client.finish().unwrap();
        let mut received = Bytes::ZERO;
        eventually(|| match server.discard(ALL_THERE_IS).unwrap() {
            Some(Bytes::ZERO) => Some(()),
            more => {
                received += more.unwrap_or(Bytes::ZERO);
                None
            }
        });
        assert!(sent > Bytes::ZERO && received == sent, "{sent} {received}");
    }

    #[test]
    fn a_reset_ends_the_peers_connection_at_once() {
        let (client, server) = loopback(&FlowOptions::default());
        server.reset();
        let error = eventually(|| client.discard(ALL_THERE_IS).err());
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn accepted_connections_inherit_the_listeners_window() {
        // RFC 7323 section 2.2: 20,000 needs no scaling.
        let window = Bytes::new(20_000);
        let (client, _server) =
            loopback(&FlowOptions { window: Some(window), ..Default::default() });
        let seen = Info::read(&client).unwrap().snd_wnd.unwrap_or(window);
        assert!(seen <= window, "{seen}");
    }
}
