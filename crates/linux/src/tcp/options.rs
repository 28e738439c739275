//! TCP socket options, with units. A setter that may grant less than requested returns the granted value.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd;

use sweetspot_units::{Bytes, Rate};

use crate::sockopt;

/// Sets the largest receive window (`TCP_WINDOW_CLAMP`). The kernel raises it to at least half of the smallest
/// receive buffer, and overwrites it when it resizes the buffer.
pub fn set_window_clamp(socket: impl AsFd, clamp: Bytes) -> io::Result<()> {
    sockopt::set(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, int(clamp))
}

/// The largest receive window (`TCP_WINDOW_CLAMP`).
pub fn window_clamp(socket: impl AsFd) -> io::Result<Bytes> {
    sockopt::get(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP).map(bytes)
}

/// Sets the largest rate at which TCP paces payload (`SO_MAX_PACING_RATE`, 64 bits wide). Any finite rate turns on
/// TCP's own pacing, without the fq qdisc. `None` lifts the limit but leaves pacing on.
pub fn set_max_pacing_rate(socket: impl AsFd, rate: Option<Rate>) -> io::Result<()> {
    let rate = rate.map_or(u64::MAX, Rate::bytes_per_second);
    sockopt::set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, rate)
}

/// The largest pacing rate (`SO_MAX_PACING_RATE`); `None` if unlimited.
pub fn max_pacing_rate(socket: impl AsFd) -> io::Result<Option<Rate>> {
    let rate: u64 = sockopt::get(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE)?;
    let bits = rate.checked_mul(8).filter(|_| rate != u64::from(u32::MAX));
    Ok(bits.map(Rate::from_bits_per_second))
}

/// Sets the sender's congestion control (`TCP_CONGESTION`).
pub fn set_congestion(socket: impl AsFd, name: &str) -> io::Result<()> {
    sockopt::set_from(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes())
}

/// Whether this process may use the congestion control `name`; the error is the kernel's.
pub fn check_congestion(name: &str) -> io::Result<()> {
    set_congestion(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?, name)
}

/// The sender's congestion control (`TCP_CONGESTION`).
pub fn congestion(socket: impl AsFd) -> io::Result<String> {
    // TCP_CA_NAME_MAX of include/net/tcp.h.
    let mut name = [0_u8; 16];
    let n = sockopt::get_into(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut name)?;
    let name = name[..n].split(|b| *b == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Requests a send buffer of `size` (`SO_SNDBUF`) and returns the granted buffer, bookkeeping included. The kernel
/// grants at most `net.core.wmem_max`, doubled. This turns off autotuning of the buffer for good.
pub fn set_send_buffer(socket: impl AsFd, size: Bytes) -> io::Result<Bytes> {
    sockopt::set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, int(size))?;
    send_buffer(socket)
}

/// The send buffer (`SO_SNDBUF`), bookkeeping included.
pub fn send_buffer(socket: impl AsFd) -> io::Result<Bytes> {
    sockopt::get(socket, libc::SOL_SOCKET, libc::SO_SNDBUF).map(bytes)
}

/// Requests a receive buffer of `size` (`SO_RCVBUF`) and returns the granted buffer, bookkeeping included. The kernel
/// grants at most `net.core.rmem_max`, doubled. This turns off autotuning of the buffer for good.
pub fn set_receive_buffer(socket: impl AsFd, size: Bytes) -> io::Result<Bytes> {
    sockopt::set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, int(size))?;
    receive_buffer(socket)
}

/// The receive buffer (`SO_RCVBUF`), bookkeeping included.
pub fn receive_buffer(socket: impl AsFd) -> io::Result<Bytes> {
    sockopt::get(socket, libc::SOL_SOCKET, libc::SO_RCVBUF).map(bytes)
}

/// The socket buffers that the program set itself, so that the kernel no longer autotunes them (`SO_BUF_LOCK`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BufferLocks {
    /// The program has set `SO_SNDBUF`.
    pub send: bool,
    /// The program has set `SO_RCVBUF`.
    pub receive: bool,
}

/// `SOCK_SNDBUF_LOCK` and `SOCK_RCVBUF_LOCK` of include/uapi/linux/socket.h.
const SEND_BUFFER_LOCK: libc::c_int = 1;
const RECEIVE_BUFFER_LOCK: libc::c_int = 2;

/// The buffers that the kernel does not autotune (`SO_BUF_LOCK`, Linux 5.16). Older kernels report `ENOPROTOOPT`.
pub fn buffer_locks(socket: impl AsFd) -> io::Result<BufferLocks> {
    let bits: libc::c_int = sockopt::get(socket, libc::SOL_SOCKET, libc::SO_BUF_LOCK)?;
    Ok(BufferLocks { send: bits & SEND_BUFFER_LOCK != 0, receive: bits & RECEIVE_BUFFER_LOCK != 0 })
}

/// Sets which buffers the kernel does not autotune (`SO_BUF_LOCK`, Linux 5.16). A buffer without a lock keeps its size
/// until the kernel grows it.
pub fn set_buffer_locks(socket: impl AsFd, locks: BufferLocks) -> io::Result<()> {
    let bits = libc::c_int::from(locks.send) * SEND_BUFFER_LOCK
        + libc::c_int::from(locks.receive) * RECEIVE_BUFFER_LOCK;
    sockopt::set(socket, libc::SOL_SOCKET, libc::SO_BUF_LOCK, bits)
}

/// The fill level and size of the send buffer, bookkeeping included (`SO_MEMINFO`, Linux 4.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendMemory {
    /// Packets waiting to be sent or acknowledged.
    pub queued: Bytes,
    /// Copies of those packets in this host's queues below TCP: the queueing discipline and the device.
    pub in_device: Bytes,
    /// The limit of `queued`.
    pub send_buffer: Bytes,
}

/// How full a socket's send buffer is.
pub fn send_memory(socket: impl AsFd) -> io::Result<SendMemory> {
    // include/uapi/linux/sock_diag.h: SK_MEMINFO_WMEM_ALLOC, _SNDBUF and _WMEM_QUEUED among nine words.
    const WMEM_ALLOC: usize = 2;
    const SNDBUF: usize = 3;
    const WMEM_QUEUED: usize = 5;
    let mut words = [0_u8; 64];
    let n = sockopt::get_into(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut words)?;
    let word = |index: usize| {
        let word = words[..n].chunks_exact(4).nth(index).and_then(|word| word.try_into().ok());
        Bytes::new(word.map_or(0, u32::from_ne_bytes).into())
    };
    let [in_device, send_buffer, queued] = [WMEM_ALLOC, SNDBUF, WMEM_QUEUED].map(word);
    Ok(SendMemory { queued, in_device, send_buffer })
}

/// Whether a socket is a TCP socket (`SO_PROTOCOL`); the error is `ENOTSOCK` if it is not a socket.
pub fn is_tcp(socket: impl AsFd) -> io::Result<bool> {
    let protocol: libc::c_int = sockopt::get(socket, libc::SOL_SOCKET, libc::SO_PROTOCOL)?;
    Ok(protocol == libc::IPPROTO_TCP)
}

/// Sets how much unsent data may be in the send buffer before the socket stops being writable (`TCP_NOTSENT_LOWAT`).
pub fn set_notsent_low_water(socket: impl AsFd, size: Bytes) -> io::Result<()> {
    sockopt::set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, int(size))
}

/// The socket's cookie (`SO_COOKIE`), which is unique until the next boot. Since Linux 4.12.
pub fn cookie(socket: impl AsFd) -> io::Result<u64> {
    sockopt::get(socket, libc::SOL_SOCKET, libc::SO_COOKIE)
}

/// The addresses of both ends of a connection, this end first. An IPv4 address mapped into IPv6 is returned as IPv4.
/// `None` for sockets without IP addresses.
pub fn ends(socket: impl AsFd) -> io::Result<Option<(SocketAddr, SocketAddr)>> {
    let socket = socket.as_fd();
    let socket = socket2::SockRef::from(&socket);
    let canonical = |a: SocketAddr| SocketAddr::new(a.ip().to_canonical(), a.port());
    let ends = (socket.local_addr()?.as_socket(), socket.peer_addr()?.as_socket());
    Ok(ends.0.zip(ends.1).map(|(local, remote)| (canonical(local), canonical(remote))))
}

/// Bytes received in order that the application has not read (`SIOCINQ`).
pub fn unread(socket: impl AsFd) -> io::Result<Bytes> {
    sockopt::queue_length(socket, libc::FIONREAD).map(Bytes::new)
}

/// Bytes in the send buffer that were never sent (`SIOCOUTQNSD`).
pub fn unsent(socket: impl AsFd) -> io::Result<Bytes> {
    // include/uapi/linux/sockios.h; libc does not define it.
    const SIOCOUTQNSD: libc::Ioctl = 0x894B;
    sockopt::queue_length(socket, SIOCOUTQNSD).map(Bytes::new)
}

fn int(n: Bytes) -> libc::c_int {
    libc::c_int::try_from(n.get()).unwrap_or(libc::c_int::MAX)
}

fn bytes(n: libc::c_int) -> Bytes {
    Bytes::new(n.max(0) as u64)
}

/// If `deaf`, drops every segment that reaches `socket` before TCP sees it, as if host or path were unreachable;
/// otherwise stops dropping.
pub fn set_deaf(socket: impl AsFd, deaf: bool) -> io::Result<()> {
    if !deaf {
        return sockopt::set(socket, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0);
    }
    sockopt::keep_first(socket, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn congestion_control_is_read_back_as_set() {
        let (client, _server) = pair();
        set_congestion(&client, "reno").unwrap();
        assert_eq!(congestion(&client).unwrap(), "reno");
        assert!(set_congestion(&client, "no-such-control").is_err());
    }

    #[test]
    fn pacing_rates_may_exceed_32_bits() {
        let (client, _server) = pair();
        assert_eq!(max_pacing_rate(&client).unwrap(), None);
        // 100 Gbit/s = 12.5e9 B/s, more than 2^32.
        let rate = Rate::from_mbit_per_second(100_000);
        set_max_pacing_rate(&client, Some(rate)).unwrap();
        assert_eq!(max_pacing_rate(&client).unwrap(), Some(rate));
        set_max_pacing_rate(&client, None).unwrap();
        assert_eq!(max_pacing_rate(&client).unwrap(), None);
    }

    #[test]
    fn the_kernel_doubles_a_requested_buffer_up_to_its_limit() {
        let (client, _server) = pair();
        // The kernel doubles the requested 100 kB (socket(7)).
        assert_eq!(set_send_buffer(&client, Bytes::new(100_000)).unwrap(), Bytes::new(200_000));
        let max = crate::sysctl::wmem_max().unwrap();
        assert_eq!(set_send_buffer(&client, Bytes::new(1 << 30)).unwrap(), max * 2);
    }

    #[test]
    fn a_set_buffer_stays_locked_until_its_lock_is_cleared() {
        let (client, _server) = pair();
        let locks = |socket: &TcpStream| buffer_locks(socket).ok();
        let none = locks(&client);
        assert!(none.is_none_or(|none| none == BufferLocks::default()));
        set_receive_buffer(&client, Bytes::new(100_000)).unwrap();
        if none.is_some() {
            assert_eq!(locks(&client), Some(BufferLocks { send: false, receive: true }));
            set_buffer_locks(&client, BufferLocks::default()).unwrap();
            assert_eq!(locks(&client), none);
        }
    }

    #[test]
    fn an_idle_send_buffer_is_empty_and_has_the_so_sndbuf_size() {
        let (client, _server) = pair();
        let send_buffer = send_buffer(&client).unwrap();
        let empty = SendMemory { queued: Bytes::ZERO, in_device: Bytes::ZERO, send_buffer };
        assert_eq!(send_memory(&client).unwrap(), empty);
    }

    #[test]
    fn is_tcp_rejects_files_and_is_false_for_datagram_sockets() {
        assert!(is_tcp(pair().0).unwrap());
        assert!(!is_tcp(std::net::UdpSocket::bind("127.0.0.1:0").unwrap()).unwrap());
        let file = std::fs::File::open("/proc/self/stat").unwrap();
        assert_eq!(is_tcp(file).unwrap_err().raw_os_error(), Some(libc::ENOTSOCK));
    }

    #[test]
    fn unread_bytes_are_counted() {
        use std::io::{Read, Write};
        let (mut client, mut server) = pair();
        client.write_all(&[7; 1000]).unwrap();
        server.read_exact(&mut [0; 1]).unwrap();
        assert_eq!(unread(&server).unwrap(), Bytes::new(999));
        assert_eq!(unsent(&client).unwrap(), Bytes::ZERO);
    }
}
