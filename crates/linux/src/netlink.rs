//! Netlink sockets (netlink(7)): a request to the kernel and the messages of its reply.

use std::io;
use std::os::fd::OwnedFd;

use netlink_packet_core::{
    Emitable, NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NlaBuffer, NlasIterator,
};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// `struct nlmsghdr`.
const NLMSGHDR_BYTES: usize = 16;
const NLMSG_ERROR: u16 = libc::NLMSG_ERROR as u16;
const NLMSG_DONE: u16 = libc::NLMSG_DONE as u16;

/// A netlink socket. It belongs to the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Netlink {
    /// Opens a socket for one of the protocols `NETLINK_*`; `None` is protocol 0, `NETLINK_ROUTE`.
    pub(crate) fn open(protocol: Option<Protocol>) -> io::Result<Netlink> {
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, protocol)?;
        Ok(Netlink { socket, buffer: vec![0; 1 << 16] })
    }

    /// Sends a request of type `kind` and passes the type and content of every message of the reply to `visit`. A dump
    /// (`NLM_F_DUMP`) has an end marker; any other reply is a single message, such as an acknowledgement (`NLM_F_ACK`).
    pub(crate) fn query(
        &mut self,
        kind: u16,
        flags: u16,
        body: &[u8],
        visit: &mut dyn FnMut(u16, &[u8]),
    ) -> io::Result<()> {
        send(&self.socket, &request(kind, flags, body), SendFlags::empty())?;
        let dump = flags & NLM_F_DUMP == NLM_F_DUMP;
        loop {
            let (_, got) = recv(&self.socket, &mut self.buffer[..], RecvFlags::empty())?;
            // With less than a header, the loop would wait forever.
            if got < NLMSGHDR_BYTES {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut rest = self.buffer.get(..got).unwrap_or(&self.buffer);
            while let Ok(message) = NetlinkBuffer::new_checked(rest) {
                match message.message_type() {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => return error_in(message.payload()),
                    kind => visit(kind, message.payload()),
                }
                if !dump {
                    return Ok(());
                }
                let next = (message.length() as usize).next_multiple_of(4);
                rest = rest.get(next..).unwrap_or_default();
            }
        }
    }
}

fn request(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    // Sequence number and port ID stay zero: a dedicated socket with one request at a time needs neither.
    let mut header = NetlinkHeader::default();
    header.length = (NLMSGHDR_BYTES + body.len()) as u32;
    header.message_type = kind;
    header.flags = NLM_F_REQUEST | flags;
    let mut bytes = vec![0; NLMSGHDR_BYTES];
    header.emit(&mut bytes);
    bytes.extend(body);
    bytes
}

/// The error code in `NLMSG_ERROR`; zero is an acknowledgement.
fn error_in(payload: &[u8]) -> io::Result<()> {
    match payload.first_chunk().map(|code| i32::from_ne_bytes(*code)) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The attributes in `bytes`, up to the first truncated one.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = NlaBuffer<&[u8]>> {
    NlasIterator::new(bytes).map_while(Result::ok)
}

/// The string in an attribute, up to its null byte.
pub(crate) fn text(content: &[u8]) -> String {
    let name = content.split(|b| *b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_answers_end_the_walk() {
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0);
        assert_eq!(attributes(&[8, 0, 1, 0]).count(), 0);
        assert!(error_in(&[1, 2, 3]).is_err());
        assert!(error_in(&[0; 4]).is_ok());
    }

    #[test]
    fn attributes_are_aligned_to_four_bytes() {
        // Length 5 (4 header, 1 content), type 7, padded to 8; then length 4, type 9.
        let mut bytes = [0; 12];
        bytes[..2].copy_from_slice(&5_u16.to_ne_bytes());
        bytes[2..4].copy_from_slice(&7_u16.to_ne_bytes());
        bytes[4] = 42;
        bytes[8..10].copy_from_slice(&4_u16.to_ne_bytes());
        bytes[10..12].copy_from_slice(&9_u16.to_ne_bytes());
        let seen: Vec<_> = attributes(&bytes).map(|a| (a.kind(), a.value().to_vec())).collect();
        assert_eq!(seen, [(7, vec![42]), (9, vec![])]);
    }
}
