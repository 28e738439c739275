//! The queueing discipline of a device, by rtnetlink (RTM_GETQDISC, linux/rtnetlink.h).

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::check;

const HEADER: usize = 16;
/// `struct tcmsg`.
const MESSAGE: usize = 20;
const TCA_KIND: u16 = 1;
const TC_H_ROOT: u32 = 0xffff_ffff;

/// The kind of the root queueing discipline of the device with this index, such as `fq`.
pub fn root(device: i32) -> io::Result<Option<String>> {
    // SAFETY: socket takes no pointers; the result is checked before use.
    let fd = check(unsafe {
        libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE)
    })?;
    // SAFETY: `fd` is open and nobody else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    send(&socket, &request())?;
    let mut kind = None;
    loop {
        let answer = receive(&socket)?;
        let mut rest = answer.as_slice();
        while let Some((message, next)) = split(rest) {
            match u16_at(message, 4) {
                Some(t) if i32::from(t) == libc::NLMSG_DONE => return Ok(kind),
                Some(t) if i32::from(t) == libc::NLMSG_ERROR => {
                    return Err(io::ErrorKind::Unsupported.into());
                }
                _ => kind = kind.or_else(|| root_kind(message, device)),
            }
            rest = next;
        }
    }
}

fn request() -> [u8; HEADER + MESSAGE] {
    let mut r = [0; HEADER + MESSAGE];
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    r[0..4].copy_from_slice(&((HEADER + MESSAGE) as u32).to_ne_bytes());
    r[4..6].copy_from_slice(&libc::RTM_GETQDISC.to_ne_bytes());
    r[6..8].copy_from_slice(&flags.to_ne_bytes());
    r
}

fn send(socket: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the pointer and length describe `bytes`, which outlives the call.
    let sent = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
    if sent == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn receive(socket: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0u8; 1 << 16];
    // SAFETY: the pointer and length describe `buffer`, which outlives the call.
    let got =
        unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    if got < HEADER {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    buffer.truncate(got);
    Ok(buffer)
}

/// The first message or attribute of `bytes` by its length, and what follows it, aligned to 4.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    cut(bytes, length, HEADER)
}

fn cut(bytes: &[u8], length: usize, least: usize) -> Option<(&[u8], &[u8])> {
    if length < least || length > bytes.len() {
        return None;
    }
    let next = length.next_multiple_of(4).min(bytes.len());
    Some((&bytes[..length], &bytes[next..]))
}

/// The kind, if `message` describes the root discipline of `device`.
fn root_kind(message: &[u8], device: i32) -> Option<String> {
    let body = message.get(HEADER..)?;
    let word = |at: usize| body.get(at..at + 4).map(|b| [b[0], b[1], b[2], b[3]]);
    // tcm_ifindex and tcm_parent.
    if i32::from_ne_bytes(word(4)?) != device || u32::from_ne_bytes(word(12)?) != TC_H_ROOT {
        return None;
    }
    let mut attributes = body.get(MESSAGE..)?;
    while let Some(length) = u16_at(attributes, 0) {
        let (attribute, rest) = cut(attributes, usize::from(length), mem::size_of::<u32>())?;
        if u16_at(attribute, 2) == Some(TCA_KIND) {
            let name = attribute[4..].split(|b| *b == 0).next()?;
            return Some(String::from_utf8_lossy(name).into_owned());
        }
        attributes = rest;
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_has_the_discipline_noqueue() {
        // Its index is 1 in every network namespace.
        let kind = root(1).unwrap();
        assert!(kind.as_deref().is_none_or(|k| k == "noqueue"), "{kind:?}");
    }

    #[test]
    fn a_device_that_is_not_there_has_none() {
        assert_eq!(root(i32::MAX).unwrap(), None);
    }

    #[test]
    fn truncated_answers_end_the_walk() {
        assert!(split(&[1, 2]).is_none());
        assert!(split(&[200, 0, 0, 0, 0, 0]).is_none());
        assert_eq!(root_kind(&[0; 20], 1), None);
    }
}
