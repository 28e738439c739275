//! UDP as load: sends filler with or without a mark, and counts and discards arrivals.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::LazyLock;

use socket2::SockRef;
use sweetspot_units::Bytes;

use crate::{check, sockopt};

/// The content of unmarked and of marked datagrams.
static FILLER: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| [0, 1].map(|byte| vec![byte; 1 << 16]));

/// A non-blocking UDP socket that ignores the content of datagrams except for the mark in the first byte.
#[derive(Debug)]
pub struct Datagrams(UdpSocket);

/// Datagrams received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// The number of datagrams.
    pub datagrams: u64,
    /// The sum of their payloads.
    pub payload: Bytes,
    /// The number of marked datagrams.
    pub marked: u64,
}

/// The maximum number of datagrams counted in one call.
const RECVMMSG_BATCH: usize = 64;
/// The maximum number of full-size datagrams that one call can send: 64 kB minus the headers.
pub const MAX_SEGMENTS: u64 = 44;
/// Receive buffer for the arrivals between two calls of [`Datagrams::count`].
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

impl Datagrams {
    /// A socket bound to `address`.
    pub fn bind(address: SocketAddr) -> io::Result<Datagrams> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        // The kernel grants at most its own limit; a smaller buffer is not an error.
        SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
        Ok(Datagrams(socket))
    }

    /// Connects the socket to `peer`.
    pub fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        self.0.connect(peer)
    }

    /// From now on [`Datagrams::send`] sends datagrams of `payload` bytes each, up to [`MAX_SEGMENTS`] in one call
    /// (UDP_SEGMENT, Linux 4.18): the kernel splits the data just before the device.
    pub fn cut_into(&self, payload: Bytes) -> io::Result<()> {
        let payload =
            libc::c_int::try_from(payload.get()).map_err(|_| io::ErrorKind::InvalidInput)?;
        sockopt::set(&self.0, libc::SOL_UDP, libc::UDP_SEGMENT, payload)
    }

    /// From now on, datagrams that arrive merged stay merged until they are read (UDP_GRO, Linux 5.0).
    pub fn leave_merged(&self) -> io::Result<()> {
        sockopt::set(&self.0, libc::SOL_UDP, libc::UDP_GRO, 1)
    }

    /// Sends one datagram of `payload` bytes. Returns false if the send buffer was full.
    pub fn send(&self, payload: Bytes) -> io::Result<bool> {
        self.send_marked(payload, false)
    }

    /// Like [`Datagrams::send`], optionally with the mark that [`Count::marked`] counts.
    pub fn send_marked(&self, payload: Bytes, is_marked: bool) -> io::Result<bool> {
        let filler = &FILLER[usize::from(is_marked)];
        let length = (payload.get() as usize).min(filler.len());
        match self.0.send(&filler[..length]) {
            Ok(_) => Ok(true),
            // The send buffer is full, or an ICMP error reports that an earlier datagram found no listener.
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused
                ) || e.raw_os_error() == Some(libc::ENOBUFS) =>
            {
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }

    /// Counts the arrivals since the last call.
    pub fn count(&self) -> io::Result<Count> {
        let mut count = Count::default();
        loop {
            let received = self.count_batch(&mut count)?;
            if received < RECVMMSG_BATCH {
                return Ok(count);
            }
        }
    }

    fn count_batch(&self, count: &mut Count) -> io::Result<usize> {
        let mut marks = [0_u8; RECVMMSG_BATCH];
        let first = marks.as_mut_ptr();
        let mut parts: [libc::iovec; RECVMMSG_BATCH] = std::array::from_fn(|i| libc::iovec {
            iov_base: first.wrapping_add(i).cast(),
            iov_len: 1,
        });
        // SAFETY: mmsghdr is plain data for which zeros are a value: no address, no control data.
        let mut headers: [libc::mmsghdr; RECVMMSG_BATCH] = unsafe { std::mem::zeroed() };
        for (header, part) in headers.iter_mut().zip(&mut parts) {
            header.msg_hdr.msg_iov = &raw mut *part;
            header.msg_hdr.msg_iovlen = 1;
        }
        // MSG_TRUNC: the reported length is the datagram's, even if it exceeds the buffer (udp(7)).
        let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
        // SAFETY: the headers, their iovecs and the byte within `marks` that each points to outlive the call, which
        // returns before any is used again.
        let n = unsafe {
            libc::recvmmsg(
                self.0.as_raw_fd(),
                headers.as_mut_ptr(),
                RECVMMSG_BATCH as libc::c_uint,
                // The type of `flags` is signed on one of musl and glibc and unsigned on the other.
                flags as _,
                std::ptr::null_mut(),
            )
        };
        let received = match check(n) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
            // An ICMP error about an earlier datagram.
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => 0,
            other => other? as usize,
        };
        count.datagrams += received as u64;
        count.marked += marks[..received].iter().map(|mark| u64::from(*mark == 1)).sum::<u64>();
        count.payload += headers[..received].iter().map(|h| Bytes::new(h.msg_len.into())).sum();
        Ok(received)
    }
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_units::Duration;

    use super::*;
    use crate::{clock, event_fd};

    fn connected() -> (Datagrams, Datagrams) {
        let local = ([127, 0, 0, 1], 0).into();
        let (sender, receiver) = (Datagrams::bind(local).unwrap(), Datagrams::bind(local).unwrap());
        sender.connect(receiver.0.local_addr().unwrap()).unwrap();
        (sender, receiver)
    }

    /// All arrivals, once `datagrams` have arrived: a busy kernel leaves loopback delivery to ksoftirqd, after `send`
    /// has returned.
    fn arrived(receiver: &Datagrams, datagrams: u64) -> Count {
        let mut sum = receiver.count().unwrap();
        while sum.datagrams < datagrams {
            let due = clock::now() + Duration::from_secs(30);
            event_fd::wait_readable(&[receiver.as_fd()], due).unwrap();
            let count = receiver.count().unwrap();
            assert_ne!(count, Count::default(), "nothing came after {sum:?}");
            sum.datagrams += count.datagrams;
            sum.payload += count.payload;
            sum.marked += count.marked;
        }
        sum
    }

    #[test]
    fn datagrams_are_counted_with_their_full_length() {
        let (sender, receiver) = connected();
        assert_eq!(receiver.count().unwrap(), Count::default());
        // More than one batch.
        for i in 0..100 {
            assert!(sender.send_marked(Bytes::new(972), i >= 70).unwrap());
        }
        let expected = Count { datagrams: 100, payload: Bytes::new(97_200), marked: 30 };
        assert_eq!(arrived(&receiver, 100), expected);
        assert_eq!(receiver.count().unwrap(), Count::default());
    }

    #[test]
    fn a_segmented_send_arrives_as_datagrams_of_the_segment_size() {
        let (sender, receiver) = connected();
        sender.cut_into(Bytes::new(1472)).unwrap();
        for datagrams in [1, 3, MAX_SEGMENTS] {
            let payload = Bytes::new(1472 * datagrams);
            assert!(sender.send(payload).unwrap());
            assert_eq!(arrived(&receiver, datagrams), Count { datagrams, payload, marked: 0 });
        }
    }
}
