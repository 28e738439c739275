//! `getsockopt` and `setsockopt` with their sizes right.

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd};

use crate::check;

/// A type without padding or invalid bit patterns, which the kernel may fill in.
///
/// # Safety
/// Every bit pattern must be a value of the type.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: integers take every bit pattern.
unsafe impl Plain for libc::c_int {}
// SAFETY: as above.
unsafe impl Plain for u64 {}

/// Sets an option to a plain value.
pub(crate) fn set<T: Plain>(socket: impl AsFd, level: i32, name: i32, value: T) -> io::Result<()> {
    // SAFETY: the pointer and length describe `value`, which lives through the call.
    let rc = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            mem::size_of::<T>() as libc::socklen_t,
        )
    };
    check(rc).map(|_| ())
}

/// Attaches a classic BPF program, which the kernel copies.
pub(crate) fn set_filter(socket: impl AsFd, program: &libc::sock_fprog) -> io::Result<()> {
    // SAFETY: the program and its instructions live through the call.
    let rc = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const *program).cast(),
            mem::size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    check(rc).map(|_| ())
}

/// Sets an option to a string of bytes.
pub(crate) fn set_bytes(socket: impl AsFd, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    // SAFETY: the pointer and length describe `value`, which lives through the call.
    let rc = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    check(rc).map(|_| ())
}

/// Reads an option that is a plain value.
pub(crate) fn get<T: Plain>(socket: impl AsFd, level: i32, name: i32) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and length describe `value`, which lives through the call.
    let rc = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            value.as_mut_ptr().cast(),
            &mut length,
        )
    };
    check(rc)?;
    // SAFETY: zeroed at first, and `Plain` takes every bit pattern.
    Ok(unsafe { value.assume_init() })
}

/// Reads an option into `buffer`; returns how many bytes the kernel wrote.
pub(crate) fn get_bytes(
    socket: impl AsFd,
    level: i32,
    name: i32,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut length = buffer.len() as libc::socklen_t;
    // SAFETY: the pointer and length describe `buffer`, which lives through the call.
    let rc = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            buffer.as_mut_ptr().cast(),
            &mut length,
        )
    };
    check(rc).map(|_| length as usize)
}

/// An `ioctl` that reports one number about a socket (`SIOCINQ`, `SIOCOUTQ`, `SIOCOUTQNSD`).
pub(crate) fn queue_length(socket: impl AsFd, request: libc::Ioctl) -> io::Result<u64> {
    let mut n: libc::c_int = 0;
    // SAFETY: these requests write one int through the pointer.
    let rc = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), request, &mut n) };
    check(rc).map(|_| n.max(0) as u64)
}
