//! `getsockopt` and `setsockopt` with correct sizes.

use std::io;
use std::mem;
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
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}

// SAFETY: as above, for each of the elements.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
// SAFETY: a structure of integers without padding.
unsafe impl Plain for libc::tpacket_stats_v3 {}

/// Sets an option; the kernel reads all bytes of `value`.
pub(crate) fn set<T>(socket: impl AsFd, level: i32, name: i32, value: T) -> io::Result<()> {
    set_from(socket, level, name, &value)
}

/// Makes the kernel keep the first `bytes` of each packet, or drop the packet if that is zero (`SO_ATTACH_FILTER`,
/// socket(7)).
pub(crate) fn keep_first(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    let code = (libc::BPF_RET | libc::BPF_K) as u16;
    // The kernel copies the program.
    let mut program = [libc::sock_filter { code, jt: 0, jf: 0, k: bytes }];
    let program = libc::sock_fprog { len: 1, filter: program.as_mut_ptr() };
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program)
}

/// Sets an option to a borrowed value, such as a byte string.
pub(crate) fn set_from<T: ?Sized>(
    socket: impl AsFd,
    level: i32,
    name: i32,
    value: &T,
) -> io::Result<()> {
    let (fd, size) = (socket.as_fd().as_raw_fd(), mem::size_of_val(value) as libc::socklen_t);
    // SAFETY: pointer and length describe `value`, which lives through the call.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const *value).cast(), size) })?;
    Ok(())
}

/// Reads an option that is a plain value.
pub(crate) fn get<T: Plain + Default>(socket: impl AsFd, level: i32, name: i32) -> io::Result<T> {
    let mut value = T::default();
    get_into(socket, level, name, &mut value)?;
    Ok(value)
}

/// Reads an option into `value`; returns how many bytes the kernel wrote.
pub(crate) fn get_into<T: Plain>(
    socket: impl AsFd,
    level: i32,
    name: i32,
    value: &mut T,
) -> io::Result<usize> {
    let (fd, mut size) = (socket.as_fd().as_raw_fd(), mem::size_of::<T>() as libc::socklen_t);
    // SAFETY: pointer and length describe `value`, which lives through the call; every bit pattern is a valid `Plain`.
    check(unsafe { libc::getsockopt(fd, level, name, (&raw mut *value).cast(), &mut size) })?;
    Ok(size as usize)
}

/// An `ioctl` that reports one number about a socket (`SIOCINQ`, `SIOCOUTQ`, `SIOCOUTQNSD`).
pub(crate) fn queue_length(socket: impl AsFd, request: libc::Ioctl) -> io::Result<u64> {
    let mut n: libc::c_int = 0;
    // SAFETY: these requests write one int through the pointer.
    let rc = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), request, &mut n) };
    check(rc).map(|_| n.max(0) as u64)
}
