//! File operations that the standard library does not offer.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{
    FallocateFlags, FlockOperation, MemfdFlags, fallocate, flock, fstatfs, memfd_create,
};
use rustix::io::Errno;
use sweetspot_units::Bytes;

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

/// A file in memory, without a name; on the disk where memfd_create(2) is forbidden.
pub fn in_memory() -> io::Result<File> {
    match memfd_create(c"sweetspot", MemfdFlags::CLOEXEC) {
        Ok(file) => Ok(file.into()),
        Err(Errno::NOSYS | Errno::PERM) => File::options()
            .read(true)
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_TMPFILE)
            .open(std::env::temp_dir()),
        Err(error) => Err(error.into()),
    }
}

/// Takes an exclusive lock on an open file. Returns false if somebody else holds one. The lock ends with the last
/// descriptor of the file.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Reserves `length` on the disk from `offset` on, without changing the file's length. Does nothing on file systems that
/// cannot reserve, and where fallocate(2) is forbidden.
pub fn reserve(file: impl AsFd, offset: Bytes, length: Bytes) -> io::Result<()> {
    if offset.get().max(length.get()) > i64::MAX as u64 {
        return Err(Errno::FBIG.into());
    }
    if length == Bytes::ZERO {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::KEEP_SIZE, offset.get(), length.get()) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a file is in memory (tmpfs): there a reservation keeps nothing contiguous, and looks each page up once more.
pub fn is_in_memory(file: impl AsFd) -> bool {
    // Their types differ between C libraries.
    fstatfs(file).is_ok_and(|found| i128::from(found.f_type) == i128::from(libc::TMPFS_MAGIC))
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
