//! File operations that the standard library does not offer.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sweetspot_units::Bytes;

use crate::check;

/// The flag to open a file only if it is no symbolic link.
pub const NO_FOLLOW: i32 = libc::O_NOFOLLOW;

/// Replaces the file at `path`, or makes it, with `mode` less the umask: whatever happens, the old content is there or
/// the new. When it returns, the new content is on the disk under its name.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    write_beside(path, content, mode, |unfinished| fs::rename(unfinished, path))?;
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Makes the file at `path`, with `mode` less the umask: whatever happens, nothing is there or the whole content. Fails
/// if something is there already.
pub fn create_whole(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    // A link, unlike a rename, leaves an existing file alone.
    write_beside(path, content, mode, |unfinished| fs::hard_link(unfinished, path))
}

/// Writes `content` to a file beside `path` and puts it in `place` when it is on the disk.
fn write_beside(
    path: &Path,
    content: &[u8],
    mode: u32,
    place: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
    let unfinished = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let mut options = File::options();
    let opened = options.write(true).create(true).truncate(true).mode(mode).open(&unfinished);
    let written = opened.and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    let placed = written.and_then(|()| place(&unfinished));
    // It may have been renamed, or never made.
    let _ = fs::remove_file(&unfinished);
    placed
}

/// Makes a directory, unless there is one; its parent must be there.
pub fn make_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// A file in memory, without a name.
pub fn in_memory() -> io::Result<File> {
    // SAFETY: the name is a C string; the descriptor is new and ours alone.
    unsafe {
        let fd = check(libc::memfd_create(c"sweetspot".as_ptr(), libc::MFD_CLOEXEC))?;
        Ok(File::from_raw_fd(fd))
    }
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

/// Reserves `length` on the disk from `offset` on, without changing the file's length. Does nothing on file systems that
/// cannot reserve.
pub fn reserve(file: impl AsFd, offset: Bytes, length: Bytes) -> io::Result<()> {
    let position = |bytes: Bytes| {
        libc::off_t::try_from(bytes.get()).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))
    };
    let (offset, length) = (position(offset)?, position(length)?);
    if length == 0 {
        return Ok(());
    }
    let keep = libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the descriptor is open.
    let rc = unsafe { libc::fallocate(file.as_fd().as_raw_fd(), keep, offset, length) };
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
