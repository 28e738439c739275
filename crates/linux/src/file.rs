//! File operations that the standard library does not offer.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use sweetspot_units::Bytes;

/// Takes an exclusive lock on an open file. Returns false if somebody else holds one. The lock ends with the last
/// descriptor of the file.
pub fn try_lock(file: &File) -> io::Result<bool> {
    // SAFETY: the descriptor is open.
    let rc = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    if rc == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::WouldBlock { Ok(false) } else { Err(error) }
}

/// Reserves `size` on the disk without changing the file's length. Does nothing on file systems that cannot
/// reserve.
pub fn reserve(file: impl AsFd, size: Bytes) -> io::Result<()> {
    let Ok(length) = libc::off_t::try_from(size.get()) else {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    };
    if length == 0 {
        return Ok(());
    }
    // SAFETY: the descriptor is open.
    let rc =
        unsafe { libc::fallocate(file.as_fd().as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, 0, length) };
    if rc == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::ENOSYS) => Ok(()),
        _ => Err(error),
    }
}

/// Starts to write a range of a file back to disk, in bytes, without waiting. This is a hint; failures are
/// ignored.
pub fn start_writeback(file: &File, offset: u64, length: u64) {
    let (Ok(offset), Ok(length)) = (offset.try_into(), length.try_into()) else { return };
    // SAFETY: the descriptor is open.
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE);
    }
}
