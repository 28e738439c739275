//! UDP sockets with the kernel's arrival times, and bursts sent in one call.

use std::array;
use std::io::{self, IoSlice};
use std::mem;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;
use std::sync::OnceLock;

use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};
use sweetspot_units::{Duration, Time};

use crate::{clock, interfaces, sockopt};

/// A non-blocking UDP socket that reports when the kernel received each datagram.
#[derive(Debug)]
pub struct Udp {
    socket: UdpSocket,
    /// Whether bursts are sent as one buffer that the kernel splits; determined by the first burst.
    splits: OnceLock<bool>,
}

/// The metadata of a received datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedDatagram {
    /// Its length, in bytes. It may exceed the buffer, in which case the rest was cut off.
    pub length: usize,
    /// The sender's address.
    pub from: SocketAddr,
    /// When the kernel received it, on the clock of [`clock::now`].
    pub at: Time,
}

/// Enough for a train of 128 full packets and the kernel's bookkeeping; the default is too small.
const SOCKET_BUFFER_BYTES: usize = 1 << 20;
/// The maximum number of datagrams in one call of sendmmsg(2).
const SENDMMSG_BATCH: usize = 64;
/// The maximum number of datagrams in one buffer (UDP_MAX_SEGMENTS, linux/udp.h, before Linux 6.9), and its maximum size with
/// IPv6 and UDP headers.
const MAX_SEGMENTS: usize = 64;
const MAX_SEGMENTED_BYTES: usize = u16::MAX as usize - 48;

impl Udp {
    /// A socket bound to `address`, which other sockets of this user may share. A [connected](Udp::connect) socket receives its
    /// peer's datagrams, an unconnected one the rest.
    pub fn bind_shared(address: SocketAddr) -> io::Result<Udp> {
        Udp::bind(address, true)
    }

    fn bind(address: SocketAddr, is_shared: bool) -> io::Result<Udp> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_reuse_port(is_shared)?;
        if address.is_ipv6() {
            // Like the standard library's listeners: an IPv6 wildcard address accepts IPv4 as well.
            socket.set_only_v6(false)?;
        }
        socket.bind(&address.into())?;
        socket.set_nonblocking(true)?;
        sockopt::set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
        socket.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
        Ok(Udp { socket: socket.into(), splits: OnceLock::new() })
    }

    /// A socket on any free port, with the IP version of `like`.
    pub fn bind_any(like: SocketAddr) -> io::Result<Udp> {
        let any: SocketAddr = match like {
            SocketAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        Udp::bind(any, false)
    }

    /// A socket on any free port of one of this host's addresses.
    pub fn bind_at(address: IpAddr) -> io::Result<Udp> {
        Udp::bind(SocketAddr::new(address, 0), false)
    }

    /// Connects the socket: from now on it only sends to and receives from `peer`.
    pub fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        self.socket.connect(peer)
    }

    /// The bound address.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends one datagram to the connected peer. If the send queue is full, the datagram is lost, as in the network.
    pub fn send(&self, datagram: &[u8]) -> io::Result<()> {
        match self.socket.send(datagram) {
            Err(e) if !passes(&e) => Err(e),
            _ => Ok(()),
        }
    }

    /// Receives the next datagram into `buffer`; `None` if none waits.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<ReceivedDatagram>> {
        loop {
            match self.receive_once(buffer) {
                Ok(arrival) => return Ok(Some(arrival)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                // An ICMP error about an earlier datagram; the next receive may succeed.
                Err(e) if passes(&e) => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn receive_once(&self, buffer: &mut [u8]) -> io::Result<ReceivedDatagram> {
        let mut name = SockAddrStorage::zeroed();
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // Space for one timestamp and its header; u64 for alignment.
        let mut control = [0u64; 8];
        // SAFETY: msghdr is plain data for which zeros are a value.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_namelen = name.size_of();
        // SAFETY: the storage is at least as large and aligned as the kernel's output.
        header.msg_name = ptr::from_mut(unsafe { name.view_as::<libc::sockaddr_storage>() }).cast();
        header.msg_iov = &mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = mem::size_of_val(&control) as _;
        // SAFETY: `header` points to three buffers that outlive the call, with their lengths.
        let n = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &mut header, libc::MSG_TRUNC) };
        let length = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
        // SAFETY: the kernel wrote an address of that length.
        let from = unsafe { SockAddr::new(name, header.msg_namelen) };
        Ok(ReceivedDatagram {
            length,
            from: from.as_socket().ok_or_else(|| io::Error::other("a datagram from nowhere"))?,
            at: monotonic(timestamp(&header)),
        })
    }

    /// Sends datagrams back to back to the connected peer. Returns how many the kernel accepted.
    ///
    /// Sent one by one, they would let this host's other packets in between: after each send the kernel processes arrivals and
    /// answers an ACK with segments. So the datagrams are passed as one buffer if the kernel splits it itself.
    pub fn send_burst(&self, datagrams: &[Vec<u8>]) -> io::Result<usize> {
        let splits = || {
            let local = self.local_address()?.ip().to_canonical();
            interfaces::splits_datagrams(local)
        };
        if *self.splits.get_or_init(|| splits().unwrap_or(false))
            && let Ok(sent) = self.send_split(datagrams)
        {
            return Ok(sent);
        }
        self.send_singly(datagrams)
    }

    /// Sends datagrams of equal length as few buffers. An error means that the kernel or path does not support this, and that
    /// nothing was sent.
    fn send_split(&self, datagrams: &[Vec<u8>]) -> io::Result<usize> {
        let length = datagrams.first().map_or(0, Vec::len);
        if length == 0 || datagrams.iter().any(|datagram| datagram.len() != length) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut sent = 0;
        for batch in datagrams.chunks((MAX_SEGMENTED_BYTES / length).clamp(1, MAX_SEGMENTS)) {
            match self.send_segments(&batch.concat(), length as u16) {
                Ok(()) => sent += batch.len(),
                Err(error) if sent == 0 && !passes(&error) => return Err(error),
                // The rest of the burst would no longer be back to back.
                Err(_) => break,
            }
        }
        Ok(sent)
    }

    /// Sends `whole` as datagrams of `length` bytes each.
    fn send_segments(&self, whole: &[u8], length: u16) -> io::Result<()> {
        let mut part =
            libc::iovec { iov_base: whole.as_ptr().cast_mut().cast(), iov_len: whole.len() };
        // Space for one length and its header; u64 for alignment.
        let mut control = [0u64; 3];
        // SAFETY: msghdr is plain data for which zeros are a value.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_iov = &mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = mem::size_of_val(&control) as _;
        // SAFETY: the control buffer holds one header and two bytes, and is aligned for the header.
        unsafe {
            let message = libc::CMSG_FIRSTHDR(&header);
            (*message).cmsg_level = libc::SOL_UDP;
            (*message).cmsg_type = libc::UDP_SEGMENT;
            (*message).cmsg_len = libc::CMSG_LEN(mem::size_of_val(&length) as u32) as _;
            libc::CMSG_DATA(message).cast::<u16>().write_unaligned(length);
        }
        // SAFETY: `header` points to two buffers that outlive the call, with their lengths; the kernel only reads them.
        let sent = unsafe { libc::sendmsg(self.socket.as_raw_fd(), &header, 0) };
        usize::try_from(sent).map(|_| ()).map_err(|_| io::Error::last_os_error())
    }

    fn send_singly(&self, datagrams: &[Vec<u8>]) -> io::Result<usize> {
        let mut sent = 0;
        while sent < datagrams.len() {
            let batch = &datagrams[sent..(sent + SENDMMSG_BATCH).min(datagrams.len())];
            let parts: Vec<_> = batch.iter().map(|datagram| [IoSlice::new(datagram)]).collect();
            let mut controls: [_; SENDMMSG_BATCH] =
                array::from_fn(|_| SendAncillaryBuffer::default());
            let headers = parts.iter().zip(&mut controls);
            let mut headers: Vec<_> =
                headers.map(|(part, none)| MMsgHdr::new(part, none)).collect();
            match sendmmsg(&self.socket, &mut headers, SendFlags::empty()).map_err(io::Error::from)
            {
                Ok(0) => break,
                Ok(n) => sent += n,
                // The rest of the burst would no longer be back to back.
                Err(e) if passes(&e) => break,
                Err(e) => return Err(e),
            }
        }
        Ok(sent)
    }
}

impl AsFd for Udp {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The kernel's timestamp of a datagram, on the wall clock.
fn timestamp(header: &libc::msghdr) -> Option<Time> {
    // SAFETY: `header` was filled by recvmsg, and its control buffer is still there; the macros
    // stay within its length.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while let Some(m) = message.as_ref() {
            if m.cmsg_level == libc::SOL_SOCKET && m.cmsg_type == libc::SCM_TIMESTAMPNS {
                let t = libc::CMSG_DATA(m).cast::<libc::timespec>().read_unaligned();
                return Some(Time::from_nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64));
            }
            message = libc::CMSG_NXTHDR(header, m);
        }
    }
    None
}

/// Converts a recent wall-clock time to the clock of [`clock::now`], by its age. If the age exceeds a second, the wall clock was
/// stepped or the thread slept; the current time is returned instead.
fn monotonic(wall: Option<Time>) -> Time {
    // The order matters: a preemption between the two reads makes the arrival later, so no packet appears faster than its path.
    let (wall_now, now) = (clock::wall(), clock::now());
    let ago = wall.map_or(Duration::ZERO, |wall| wall_now.since(wall));
    let ago = if ago > Duration::from_secs(1) { Duration::ZERO } else { ago };
    Time::from_nanos(now.as_nanos().saturating_sub(ago.as_nanos()))
}

/// Whether an error amounts to a loss in the network, which any datagram may suffer.
fn passes(e: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionRefused, HostUnreachable, Interrupted, NetworkDown, NetworkUnreachable,
        PermissionDenied, WouldBlock,
    };
    matches!(
        e.kind(),
        // A firewall that drops outgoing packets causes EPERM.
        ConnectionRefused
            | HostUnreachable
            | Interrupted
            | NetworkDown
            | NetworkUnreachable
            | PermissionDenied
            | WouldBlock
    ) || matches!(e.raw_os_error(), Some(libc::ENOBUFS | libc::EMSGSIZE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_fd;

    const LOCAL: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

    fn received(socket: &Udp) -> (Vec<u8>, ReceivedDatagram) {
        let due = clock::now() + Duration::from_secs(5);
        event_fd::wait_readable(&[socket.as_fd()], due).unwrap();
        let mut buffer = [0; 2000];
        let arrival = socket.receive(&mut buffer).unwrap().expect("a datagram");
        (buffer[..arrival.length].to_vec(), arrival)
    }

    #[test]
    fn arrival_times_lie_between_sending_and_reading() {
        let (sender, receiver) =
            (Udp::bind_shared(LOCAL).unwrap(), Udp::bind_shared(LOCAL).unwrap());
        sender.connect(receiver.local_address().unwrap()).unwrap();
        let before = clock::now();
        sender.send(b"probe").unwrap();
        let (bytes, arrival) = received(&receiver);
        let after = clock::now();
        assert_eq!(bytes, b"probe");
        assert_eq!(arrival.from, sender.local_address().unwrap());
        // The two clocks are read one after the other, hence the slack.
        let slack = Duration::from_millis(5);
        assert!(before <= arrival.at + slack && arrival.at <= after + slack);
    }

    #[test]
    fn a_connected_socket_takes_its_peers_datagrams_from_the_shared_port() {
        let listener = Udp::bind_shared(LOCAL).unwrap();
        let port = listener.local_address().unwrap();
        let [admitted, other] = [0, 1].map(|_| {
            let socket = Udp::bind_any(port).unwrap();
            socket.connect(port).unwrap();
            socket
        });
        admitted.send(b"knock").unwrap();
        let (_, knock) = received(&listener);
        let room = Udp::bind_shared(port).unwrap();
        room.connect(knock.from).unwrap();
        admitted.send(b"hello").unwrap();
        other.send(b"who?").unwrap();
        assert_eq!(received(&room).0, b"hello");
        assert_eq!(received(&listener).0, b"who?");
        assert_eq!(room.receive(&mut [0; 10]).unwrap(), None);
    }

    #[test]
    fn a_burst_arrives_whole_and_in_order() {
        let (sender, receiver) =
            (Udp::bind_shared(LOCAL).unwrap(), Udp::bind_shared(LOCAL).unwrap());
        sender.connect(receiver.local_address().unwrap()).unwrap();
        let burst: Vec<Vec<u8>> = (0..100u8).map(|n| vec![n; 1000]).collect();
        assert_eq!(sender.send_burst(&burst).unwrap(), 100);
        for datagram in &burst {
            assert_eq!(&received(&receiver).0, datagram);
        }
    }

    #[test]
    fn a_split_send_arrives_as_the_original_datagrams() {
        let (sender, receiver) =
            (Udp::bind_shared(LOCAL).unwrap(), Udp::bind_shared(LOCAL).unwrap());
        sender.connect(receiver.local_address().unwrap()).unwrap();
        // More than one buffer holds, by number and by bytes.
        for length in [100, 1472] {
            let burst: Vec<Vec<u8>> = (0..100u8).map(|n| vec![n; length]).collect();
            assert_eq!(sender.send_split(&burst).unwrap(), 100);
            for datagram in &burst {
                assert_eq!(&received(&receiver).0, datagram);
            }
        }
        assert!(sender.send_split(&[vec![0; 9], vec![0; 8]]).is_err(), "two lengths");
    }

    #[test]
    fn a_closed_peer_port_is_not_an_error() {
        let (sender, receiver) =
            (Udp::bind_shared(LOCAL).unwrap(), Udp::bind_shared(LOCAL).unwrap());
        sender.connect(receiver.local_address().unwrap()).unwrap();
        drop(receiver);
        for _ in 0..3 {
            sender.send(b"anybody?").unwrap();
            assert_eq!(sender.receive(&mut [0; 10]).unwrap(), None);
        }
    }
}
