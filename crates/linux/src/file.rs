//! File operations that the standard library does not offer.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use sweetspot_units::Bytes;

/// Renames `from` to `to` in one step. The error is `AlreadyExists` if `to` exists.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let (from_c, to_c) = (c_path(from)?, c_path(to)?);
    // By number: musl has had the function since 1.2.5 only.
    // SAFETY: both are NUL-terminated strings that live through the call.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            libc::AT_FDCWD,
            from_c.as_ptr(),
            libc::AT_FDCWD,
            to_c.as_ptr(),
            libc::RENAME_NOREPLACE,
        )
    };
    if rc == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // File systems without the flag (NFS, some FUSE): link(2) refuses an existing name as well.
    if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) {
        std::fs::hard_link(from, to)?;
        return std::fs::remove_file(from);
    }
    Err(error)
}

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

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a NUL byte in a file name"))
}
