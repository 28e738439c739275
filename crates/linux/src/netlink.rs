//! Netlink sockets and the framing of their messages (netlink(7)): as much of it as reading the
//! kernel's tables takes.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::check;

/// `struct nlmsghdr`.
pub(crate) const NLMSGHDR_BYTES: usize = 16;
/// `struct nlattr`.
const NLATTR_BYTES: usize = 4;

/// A netlink socket. It belongs to the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Netlink {
    /// Opens a socket of one of the protocols `NETLINK_*`.
    pub(crate) fn open(protocol: i32) -> io::Result<Netlink> {
        // SAFETY: socket takes no pointers; the result is checked before use.
        let fd = check(unsafe {
            libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol)
        })?;
        // SAFETY: `fd` is open and nobody else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Netlink { socket, buffer: vec![0; 1 << 16] })
    }

    /// Sends a request of type `kind`, and hands every message of the answer to `visit`. A dump
    /// (`NLM_F_DUMP`) ends by itself; any other answer is a single message.
    pub(crate) fn ask(
        &mut self,
        kind: u16,
        flags: i32,
        body: &[u8],
        visit: &mut dyn FnMut(&[u8]),
    ) -> io::Result<()> {
        self.send(&request(kind, flags, body))?;
        let dump = flags & libc::NLM_F_DUMP != 0;
        loop {
            let got = self.receive()?;
            let mut rest = &self.buffer[..got];
            while let Some((message, next)) = split(rest) {
                match u16_at(message, 4).map(i32::from) {
                    Some(libc::NLMSG_DONE) => return Ok(()),
                    Some(libc::NLMSG_ERROR) => return error_of(message),
                    _ => visit(&message[NLMSGHDR_BYTES..]),
                }
                if !dump {
                    return Ok(());
                }
                rest = next;
            }
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let fd = self.socket.as_raw_fd();
        // SAFETY: the pointer and length describe `bytes`, which outlives the call.
        let sent = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), 0) };
        if sent == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn receive(&mut self) -> io::Result<usize> {
        let fd = self.socket.as_raw_fd();
        // SAFETY: the pointer and length describe the buffer, which outlives the call.
        let got = unsafe { libc::recv(fd, self.buffer.as_mut_ptr().cast(), self.buffer.len(), 0) };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        // Less than a header would be waited for again without end.
        if got < NLMSGHDR_BYTES { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(got) }
    }
}

fn request(kind: u16, flags: i32, body: &[u8]) -> Vec<u8> {
    let flags = (libc::NLM_F_REQUEST | flags) as u16;
    let mut r = Vec::with_capacity(NLMSGHDR_BYTES + body.len());
    r.extend(((NLMSGHDR_BYTES + body.len()) as u32).to_ne_bytes());
    r.extend(kind.to_ne_bytes());
    r.extend(flags.to_ne_bytes());
    // Sequence and port: one request at a time on a socket of its own needs neither.
    r.extend([0; 8]);
    r.extend(body);
    r
}

/// The error in `NLMSG_ERROR`; zero is an acknowledgement.
fn error_of(message: &[u8]) -> io::Result<()> {
    match message
        .get(NLMSGHDR_BYTES..NLMSGHDR_BYTES + 4)
        .map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
    {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The first message of `bytes`, header included, and the rest.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    cut(bytes, length, NLMSGHDR_BYTES)
}

/// The type and content of the first attribute in `bytes`, and the rest.
pub(crate) fn attribute(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (attribute, rest) = cut(bytes, usize::from(u16_at(bytes, 0)?), NLATTR_BYTES)?;
    Some((u16_at(attribute, 2)?, &attribute[NLATTR_BYTES..], rest))
}

/// Cut after `length` bytes; the rest begins at a multiple of four.
fn cut(bytes: &[u8], length: usize, least: usize) -> Option<(&[u8], &[u8])> {
    if length < least || length > bytes.len() {
        return None;
    }
    let next = length.next_multiple_of(4).min(bytes.len());
    Some((&bytes[..length], &bytes[next..]))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_answers_end_the_walk() {
        assert!(split(&[1, 2]).is_none());
        assert!(split(&[200, 0, 0, 0, 0, 0]).is_none());
        assert!(attribute(&[3, 0, 1, 0]).is_none());
        assert!(attribute(&[8, 0, 1, 0]).is_none());
    }

    #[test]
    fn attributes_are_aligned_to_four_bytes() {
        // Length 5 (4 of header, 1 of content), type 7, padded to 8; then length 4, type 9.
        let mut bytes = [0; 12];
        bytes[..2].copy_from_slice(&5_u16.to_ne_bytes());
        bytes[2..4].copy_from_slice(&7_u16.to_ne_bytes());
        bytes[4] = 42;
        bytes[8..10].copy_from_slice(&4_u16.to_ne_bytes());
        bytes[10..12].copy_from_slice(&9_u16.to_ne_bytes());
        let (kind, content, rest) = attribute(&bytes).unwrap();
        assert_eq!((kind, content), (7, &[42][..]));
        assert_eq!(attribute(rest), Some((9, &[][..], &[][..])));
    }
}
