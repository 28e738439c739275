//! File operations that the standard library does not offer.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    FallocateFlags, FlockOperation, MemfdFlags, fallocate, flock, fstatfs, memfd_create,
};
use rustix::io::Errno;
use sweetspot_units::Bytes;

/// The flag that makes opening a symbolic link fail.
pub const NO_FOLLOW: i32 = libc::O_NOFOLLOW;

/// Attempts to find an unused name for the unfinished file: each thread needs its own, as does each process with the same ID
/// in another container.
const MAX_ATTEMPTS: u32 = 1000;

/// Atomically replaces or creates the file at `path`, with `mode` minus the umask: even after a crash, it has either the old
/// or the new content. On return, the new content is on disk under its name.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    write_beside(path, content, mode, |unfinished| fs::rename(unfinished, path))?;
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Atomically creates the file at `path`, with `mode` minus the umask: even after a crash, there is either no file or the
/// whole content. Fails if the path already exists.
pub fn create_whole(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    // A link, unlike a rename, does not replace an existing file.
    write_beside(path, content, mode, |unfinished| fs::hard_link(unfinished, path))
}

/// Writes `content` to a file beside `path` and passes that file to `place` once it is on disk.
fn write_beside(
    path: &Path,
    content: &[u8],
    mode: u32,
    place: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let (unfinished, mut file) = make_beside(path, mode)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| place(&unfinished));
    // It may have been renamed already, so a failure is fine.
    let _ = fs::remove_file(&unfinished);
    placed
}

/// Creates an empty file beside `path`. If a file or link already has the chosen name, stale or planted, it is neither used
/// nor followed.
fn make_beside(path: &Path, mode: u32) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
    let mut attempts = 0..MAX_ATTEMPTS;
    loop {
        let number = attempts.next().ok_or(io::ErrorKind::AlreadyExists)?;
        let temp_path =
            path.with_file_name(format!(".{name}.{}.{number}.part", std::process::id()));
        match File::options().write(true).create_new(true).mode(mode).open(&temp_path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (temp_path, file)),
        }
    }
}

/// Creates a directory unless it exists; its parent must exist.
pub fn make_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// An unnamed file in memory, or on disk if memfd_create(2) is forbidden.
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

/// Takes an exclusive lock on an open file. Returns false if it is already locked. The lock is released when the last
/// descriptor of this open file is closed.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Reserves `length` bytes on disk from `offset` on, without changing the file's length. Does nothing on file systems without
/// reservation, or if fallocate(2) is forbidden.
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

/// Whether a file is in memory (tmpfs). A reservation there gains no contiguity and costs an extra lookup per page.
pub fn is_in_memory(file: impl AsFd) -> bool {
    // The field's type differs between C libraries.
    fstatfs(file).is_ok_and(|found| i128::from(found.f_type) == i128::from(libc::TMPFS_MAGIC))
}

/// Starts writing a byte range of a file back to disk without waiting. This is a hint; failures are ignored.
pub fn start_writeback(file: &File, offset: u64, length: u64) {
    let (Ok(offset), Ok(length)) = (offset.try_into(), length.try_into()) else { return };
    // SAFETY: the descriptor is open.
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_planted_temporary_file_is_never_used() {
        let directory =
            std::env::temp_dir().join(format!("sweetspot-planted-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let planted =
            |number: u32| directory.join(format!(".key.{}.{number}.part", std::process::id()));
        let (victim, key) = (directory.join("victim"), directory.join("key"));
        fs::write(&victim, "theirs").unwrap();
        symlink(&victim, planted(0)).unwrap();
        fs::write(planted(1), "").unwrap();
        fs::set_permissions(planted(1), fs::Permissions::from_mode(0o666)).unwrap();
        replace(&key, b"secret", 0o600).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(&key).unwrap(), "secret");
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_dir_all(&directory).unwrap();
    }
}
