//! The directory that a transfer writes into, by descriptors: no link in it is followed, and no name leaves it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use data_encoding::HEXLOWER;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Timespec, Timestamps,
};
use rustix::io::Errno;
use sweetspot_linux::{clock, file};
use sweetspot_protocol::{RelativePath, TEMP_FILE_PREFIX};
use sweetspot_units::{Bytes, Duration, Time};

use super::channel::lock;
use crate::TransferError;

const TEMP_FILE_SUFFIX: &str = ".part";
/// Hexadecimal digits between prefix and suffix.
const NAME_DIGITS: usize = 32;
/// What an interrupted transfer left is kept so long, so that it can go on.
const KEPT_FOR: Duration = Duration::from_secs(14 * 24 * 3600);
/// A transfer that has just ended still closes its files: so long, and so often, a lock is tried.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const LOCK_INTERVAL: Duration = Duration::from_millis(20);
/// How many directories are kept open.
const MAX_OPEN_DIRECTORIES: usize = 64;

/// A directory to write into.
pub(crate) struct TargetDirectory {
    root: Arc<OwnedFd>,
    open: Mutex<HashMap<Vec<u8>, Arc<OwnedFd>>>,
}

/// A file that is not yet whole. Its name follows from its final name, so that a later transfer finds it and goes
/// on; it is locked while a transfer writes it.
pub(crate) struct TempFile {
    pub file: File,
    directory: Arc<OwnedFd>,
    name: String,
    /// Whether it stays when the transfer ends early.
    keep: bool,
    /// Whether it holds something to go on with.
    holds_content: AtomicBool,
    done: AtomicBool,
}

impl TargetDirectory {
    /// The directory at `path`, which must exist.
    pub fn open(path: &Path) -> io::Result<TargetDirectory> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let root = Arc::new(rustix::fs::openat(CWD, path, flags, Mode::empty())?);
        Ok(TargetDirectory { root, open: Mutex::default() })
    }

    /// The directory that holds `path`.
    pub fn parent(&self, path: &RelativePath) -> io::Result<Arc<OwnedFd>> {
        match path.split().0 {
            Some(directory) => self.directory(directory),
            None => Ok(Arc::clone(&self.root)),
        }
    }

    fn directory(&self, path: &[u8]) -> io::Result<Arc<OwnedFd>> {
        let mut open = lock(&self.open);
        if let Some(directory) = open.get(path) {
            return Ok(Arc::clone(directory));
        }
        let opened = Arc::new(rustix::fs::openat2(
            &self.root,
            OsStr::from_bytes(path),
            OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        )?);
        if open.len() >= MAX_OPEN_DIRECTORIES {
            open.clear();
        }
        open.insert(path.to_owned(), Arc::clone(&opened));
        Ok(opened)
    }

    /// What is at `path`, not following a link; `None` if nothing is.
    pub fn status(&self, path: &RelativePath) -> io::Result<Option<Stat>> {
        let parent = self.parent(path)?;
        match rustix::fs::statat(&parent, name(path), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a directory of this mode, in which its owner may write for now. Returns false if it was there already. The error is `AlreadyExists` if something else is.
    pub fn make_directory(&self, path: &RelativePath, mode: u32) -> io::Result<bool> {
        let parent = self.parent(path)?;
        match rustix::fs::mkdirat(
            &parent,
            name(path),
            Mode::from_raw_mode(mode & 0o777) | Mode::RWXU,
        ) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => match self.status(path)? {
                Some(stat) if is(&stat, FileType::Directory) => Ok(false),
                _ => Err(Errno::EXIST.into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a symbolic link, in place of another or of a file if `replace`. Returns false if it was there already.
    pub fn make_symlink(
        &self,
        path: &RelativePath,
        target: &[u8],
        replace: bool,
    ) -> io::Result<bool> {
        let parent = self.parent(path)?;
        let target = OsStr::from_bytes(target);
        match rustix::fs::symlinkat(target, &parent, name(path)) {
            Err(Errno::EXIST) => {}
            other => return Ok(other.map(|()| true)?),
        }
        let same = rustix::fs::readlinkat(&parent, name(path), Vec::new())
            .is_ok_and(|held| held.as_bytes() == target.as_bytes());
        if same || !replace {
            return if same { Ok(false) } else { Err(Errno::EXIST.into()) };
        }
        let temporary = temp_name(path);
        let _ = rustix::fs::unlinkat(&parent, &temporary, AtFlags::empty());
        rustix::fs::symlinkat(target, &parent, &temporary)?;
        rename(&parent, &temporary, name(path), true).inspect_err(|_| {
            let _ = rustix::fs::unlinkat(&parent, &temporary, AtFlags::empty());
        })?;
        Ok(true)
    }

    /// Gives the file at `from` another name. Returns false if it has it already.
    pub fn make_hard_link(
        &self,
        from: &RelativePath,
        path: &RelativePath,
        replace: bool,
    ) -> io::Result<bool> {
        let (source, parent) = (self.parent(from)?, self.parent(path)?);
        let link =
            |to: &OsStr| rustix::fs::linkat(&source, name(from), &parent, to, AtFlags::empty());
        match link(name(path)) {
            Err(Errno::EXIST) => {}
            other => return Ok(other.map(|()| true)?),
        }
        let (one, other) = (self.status(from)?, self.status(path)?);
        let same =
            one.zip(other).is_some_and(|(a, b)| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino));
        if same || !replace {
            return if same { Ok(false) } else { Err(Errno::EXIST.into()) };
        }
        let temporary = temp_name(path);
        let _ = rustix::fs::unlinkat(&parent, &temporary, AtFlags::empty());
        link(OsStr::new(&temporary))?;
        rename(&parent, &temporary, name(path), true)?;
        Ok(true)
    }

    /// Sets a directory's mode and time.
    pub fn finish_directory(
        &self,
        path: &RelativePath,
        mode: u32,
        modified: (i64, u32),
    ) -> io::Result<()> {
        let directory = self.directory(path.as_bytes())?;
        rustix::fs::fchmod(&directory, Mode::from_raw_mode(mode))?;
        Ok(rustix::fs::futimens(&directory, &times(modified))?)
    }

    /// Sets the time of a symbolic link.
    pub fn set_link_time(&self, path: &RelativePath, modified: (i64, u32)) -> io::Result<()> {
        let parent = self.parent(path)?;
        let times = times(modified);
        Ok(rustix::fs::utimensat(&parent, name(path), &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Opens a regular file to read what is there.
    pub fn open_file(&self, path: &RelativePath) -> io::Result<File> {
        let parent = self.parent(path)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(rustix::fs::openat(&parent, name(path), flags, Mode::empty())?.into())
    }

    /// Whether a file of that name has content of this hash.
    pub fn has_content(&self, path: &RelativePath, hash: &blake3::Hash) -> io::Result<bool> {
        let file = self.open_file(path)?;
        if !file.metadata()?.is_file() {
            return Ok(false);
        }
        Ok(blake3::Hasher::new().update_reader(file)?.finalize() == *hash)
    }

    /// The unfinished file of `path`, new or left by a transfer that was interrupted. `keep`: it is to stay if this
    /// transfer is interrupted. The error is `WouldBlock` if another transfer writes it, and goes on to.
    pub fn temp_file(&self, path: &RelativePath, keep: bool) -> io::Result<TempFile> {
        let directory = self.parent(path)?;
        let name = temp_name(path);
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::CREATE;
        let give_up = clock::now() + LOCK_TIMEOUT;
        loop {
            let file =
                File::from(rustix::fs::openat(&directory, &name, flags, Mode::RUSR | Mode::WUSR)?);
            if !file::try_lock(&file)? {
                if clock::now() >= give_up {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                clock::sleep_until(clock::now() + LOCK_INTERVAL);
                continue;
            }
            if is_named(&file, &directory, &name)? {
                let holds_content = file.metadata()?.len() > 0;
                return Ok(TempFile::new(file, directory, name, keep, holds_content));
            }
        }
    }

    /// Writes a file of one piece, in as few calls as that takes: it has its name when it is whole. Returns false if
    /// another transfer has written the same content meanwhile.
    pub fn write_small(
        &self,
        path: &RelativePath,
        content: &[u8],
        status: &FileStatus,
        replace: bool,
    ) -> io::Result<bool> {
        let directory = self.parent(path)?;
        // Without a name until it is whole: nothing is left of it when this process is killed.
        let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        let unnamed = match rustix::fs::openat(&directory, ".", flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => File::from(file),
            // File systems that have no such files: NFS, some FUSE.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                return self.write_named(path, content, status, replace);
            }
            Err(error) => return Err(error.into()),
        };
        (&unnamed).write_all(content)?;
        status.give(&unnamed)?;
        match link(&unnamed, &directory, name(path)) {
            Err(Errno::EXIST) if replace => self.write_named(path, content, status, replace),
            Err(Errno::EXIST) if self.has_content(path, &blake3::hash(content))? => Ok(false),
            Err(error) => Err(error.into()),
            Ok(()) => Ok(true),
        }
    }

    /// As [`TargetDirectory::write_small`], under another name at first.
    fn write_named(
        &self,
        path: &RelativePath,
        content: &[u8],
        status: &FileStatus,
        replace: bool,
    ) -> io::Result<bool> {
        let temp_file = self.temp_file(path, false)?;
        temp_file.file.set_len(0)?;
        (&temp_file.file).write_all(content)?;
        status.give(&temp_file.file)?;
        self.finish(&temp_file, path, replace, || blake3::hash(content))
    }

    /// Gives `temp_file`, whose content has that hash, its final name. Returns false if another transfer of the same
    /// content was faster: that of a sender that was killed, say, after it had sent this file.
    pub fn finish(
        &self,
        temp_file: &TempFile,
        path: &RelativePath,
        replace: bool,
        hash: impl FnOnce() -> blake3::Hash,
    ) -> io::Result<bool> {
        match temp_file.finish(path, replace) {
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists
                    && self.has_content(path, &hash())? =>
            {
                temp_file.discard();
                Ok(false)
            }
            finished => finished.map(|()| true),
        }
    }

    /// Whether an interrupted transfer left something of `path`.
    pub fn has_temp_file(&self, path: &RelativePath) -> bool {
        let found = self.parent(path).map_err(|_| Errno::NOENT).and_then(|parent| {
            rustix::fs::statat(&parent, temp_name(path), AtFlags::SYMLINK_NOFOLLOW)
        });
        found.is_ok_and(|stat| stat.st_size > 0)
    }

    /// Removes what a transfer left that was interrupted while another one finished `path`.
    pub fn remove_leftover(&self, path: &RelativePath) {
        if self.has_temp_file(path) {
            // In use by a transfer it stays; what is opened so is removed when it is dropped.
            drop(self.temp_file(path, false));
        }
    }

    /// Whether there is room for `size` more. Where that cannot be told there is.
    pub fn has_room(&self, size: Bytes) -> bool {
        rustix::fs::fstatvfs(&self.root)
            .is_ok_and(|room| size.get() <= room.f_bavail.saturating_mul(room.f_frsize))
    }

    /// Writes everything that was written below it to disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.root)?)
    }

    /// Removes old leftovers at the top: those that no transfer writes and that are older than what is kept. Returns
    /// how many.
    pub fn sweep(&self) -> io::Result<usize> {
        let mut swept = 0;
        for entry in rustix::fs::Dir::read_from(&self.root)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if !name.to_str().is_some_and(is_temp_name) {
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let Ok(file) = rustix::fs::openat(&self.root, name, flags, Mode::empty()) else {
                continue;
            };
            let file = File::from(file);
            let age = rustix::fs::fstat(&file).map_or(Duration::ZERO, |stat| {
                let written = u64::try_from(stat.st_mtime).unwrap_or(0);
                clock::wall().since(Time::from_nanos(written.saturating_mul(1_000_000_000)))
            });
            let unlink = || rustix::fs::unlinkat(&self.root, name, AtFlags::empty());
            if age > KEPT_FOR && file::try_lock(&file).unwrap_or(false) && unlink().is_ok() {
                swept += 1;
            }
        }
        Ok(swept)
    }
}

/// What a file has beside its content.
pub(crate) struct FileStatus {
    pub mode: u32,
    pub modified: (i64, u32),
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

impl FileStatus {
    /// Gives `file` these extended attributes, permissions and time of the last change.
    pub fn give(&self, file: &File) -> io::Result<()> {
        let flags = rustix::fs::XattrFlags::empty();
        for (name, value) in &self.attributes {
            rustix::fs::fsetxattr(file, OsStr::from_bytes(name), value, flags)?;
        }
        set_mode_and_time(file, self)
    }
}

impl TempFile {
    fn new(
        file: File,
        directory: Arc<OwnedFd>,
        name: String,
        keep: bool,
        holds_content: bool,
    ) -> TempFile {
        let (holds_content, done) = (AtomicBool::new(holds_content), AtomicBool::new(false));
        TempFile { file, directory, name, keep, holds_content, done }
    }

    /// Reserves disk space for what comes, in large portions, so that it lies together.
    pub fn reserve(&self, offset: Bytes, length: Bytes) -> io::Result<()> {
        file::reserve(&self.file, offset, length)
    }

    /// Notes that it holds content that a later transfer can go on with.
    pub fn holds_content(&self) {
        self.holds_content.store(true, Ordering::Release);
    }

    /// Gives it its final name, in one step. The error is `AlreadyExists` if something has that name and is not to be
    /// replaced.
    pub fn finish(&self, path: &RelativePath, replace: bool) -> io::Result<()> {
        rename(&self.directory, &self.name, name(path), replace)?;
        self.done.store(true, Ordering::Release);
        Ok(())
    }

    /// Removes it: nobody needs its content any more.
    pub fn discard(&self) {
        // As when it is dropped, it stays where it cannot be removed.
        let _ = rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty());
        self.done.store(true, Ordering::Release);
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let is_of_use = self.keep && self.holds_content.load(Ordering::Acquire);
        if !self.done.load(Ordering::Acquire) && !is_of_use {
            self.discard();
        }
    }
}

/// Whether `file` still has that name: between opening and locking it its owner may have given it its final one, or
/// swept it away.
fn is_named(file: &File, directory: &OwnedFd, name: &str) -> io::Result<bool> {
    let opened = rustix::fs::fstat(file)?;
    let named = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    Ok(named.is_ok_and(|named| (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)))
}

/// Syncs the directory that holds `path`, so that its name survives a power cut.
pub(crate) fn sync_parent(target: &TargetDirectory, path: &RelativePath) -> io::Result<()> {
    Ok(rustix::fs::fsync(target.parent(path)?.as_fd())?)
}

/// Sets permissions and time of the last change.
pub(crate) fn set_mode_and_time(file: &File, status: &FileStatus) -> io::Result<()> {
    rustix::fs::fchmod(file, Mode::from_raw_mode(status.mode & 0o777))?;
    Ok(rustix::fs::futimens(file, &times(status.modified))?)
}

/// Whether `stat` is of that type.
pub(crate) fn is(stat: &Stat, file_type: FileType) -> bool {
    FileType::from_raw_mode(stat.st_mode) == file_type
}

/// The error for a failed step on `path`, for the user at either end: the name, not the directory.
pub(crate) fn failed(path: &RelativePath, error: io::Error) -> TransferError {
    TransferError::write(PathBuf::from(path.to_string()), error)
}

fn name(path: &RelativePath) -> &OsStr {
    OsStr::from_bytes(path.split().1)
}

/// The name of the unfinished file of `path`, in the same directory.
fn temp_name(path: &RelativePath) -> String {
    let hash = blake3::hash(path.split().1);
    let digits = HEXLOWER.encode(&hash.as_bytes()[..NAME_DIGITS / 2]);
    format!("{TEMP_FILE_PREFIX}{digits}{TEMP_FILE_SUFFIX}")
}

fn is_temp_name(name: &str) -> bool {
    name.strip_prefix(TEMP_FILE_PREFIX)
        .and_then(|rest| rest.strip_suffix(TEMP_FILE_SUFFIX))
        .is_some_and(|digits| {
            digits.len() == NAME_DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit())
        })
}

fn times((seconds, nanoseconds): (i64, u32)) -> Timestamps {
    let modified = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.min(999_999_999).into() };
    let unchanged = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    Timestamps { last_access: unchanged, last_modification: modified }
}

/// Gives a file without a name its name.
fn link(unnamed: &File, directory: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    match rustix::fs::linkat(unnamed, "", directory, name, AtFlags::EMPTY_PATH) {
        // Not allowed by the descriptor alone (before Linux 6.10, without CAP_DAC_READ_SEARCH): open(2) names this way.
        Err(Errno::NOENT) => {
            let by_number = format!("/proc/self/fd/{}", unnamed.as_raw_fd());
            rustix::fs::linkat(CWD, by_number, directory, name, AtFlags::SYMLINK_FOLLOW)
        }
        other => other,
    }
}

fn rename(directory: &OwnedFd, from: &str, to: &OsStr, replace: bool) -> io::Result<()> {
    if replace {
        return Ok(rustix::fs::renameat(directory, from, directory, to)?);
    }
    match rustix::fs::renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE) {
        // File systems without the flag (NFS, some FUSE): link(2) refuses an existing name as well.
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::linkat(directory, from, directory, to, AtFlags::empty())?;
            Ok(rustix::fs::unlinkat(directory, from, AtFlags::empty())?)
        }
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn path(text: &str) -> RelativePath {
        RelativePath::new(text).unwrap()
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn target() -> (tempfile::TempDir, TargetDirectory) {
        let dir = tempfile::tempdir().unwrap();
        let target = TargetDirectory::open(dir.path()).unwrap();
        (dir, target)
    }

    /// An unfinished file, left behind.
    fn left(target: &TargetDirectory, name: &str) {
        let mut left = target.temp_file(&path(name), true).unwrap();
        left.file.write_all(b"x").unwrap();
        left.holds_content();
    }

    #[test]
    fn what_is_finished_has_its_name_and_nothing_else_remains() {
        let (dir, target) = target();
        let mut temp = target.temp_file(&path("f"), true).unwrap();
        temp.file.write_all(b"new").unwrap();
        temp.finish(&path("f"), false).unwrap();
        assert_eq!(names(dir.path()), ["f"]);
        assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"new");
    }

    #[test]
    fn what_is_dropped_goes_unless_it_is_to_be_kept() {
        let (dir, target) = target();
        drop(target.temp_file(&path("f"), false).unwrap());
        drop(target.temp_file(&path("f"), true).unwrap());
        assert!(names(dir.path()).is_empty());
        left(&target, "f");
        assert!(is_temp_name(&names(dir.path())[0]));
    }

    #[test]
    fn an_existing_file_stays_unless_it_may_be_replaced() {
        let (dir, target) = target();
        fs::write(dir.path().join("f"), "old").unwrap();
        let refused = target.temp_file(&path("f"), false).unwrap().finish(&path("f"), false);
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"old");
        assert_eq!(names(dir.path()), ["f"]);
        target.temp_file(&path("f"), false).unwrap().finish(&path("f"), true).unwrap();
        assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"");
    }

    #[test]
    fn content_is_known_by_its_hash_and_what_is_discarded_is_gone() {
        let (dir, target) = target();
        fs::write(dir.path().join("f"), "there").unwrap();
        assert!(target.has_content(&path("f"), &blake3::hash(b"there")).unwrap());
        assert!(!target.has_content(&path("f"), &blake3::hash(b"other")).unwrap());
        left(&target, "f");
        target.temp_file(&path("f"), true).unwrap().discard();
        assert_eq!(names(dir.path()), ["f"]);
    }

    type Writing =
        fn(&TargetDirectory, &RelativePath, &[u8], &FileStatus, bool) -> io::Result<bool>;

    #[test]
    fn a_small_file_has_its_name_when_it_is_whole_by_either_way() {
        const WAYS: [Writing; 2] = [TargetDirectory::write_small, TargetDirectory::write_named];
        for write in WAYS {
            let (dir, target) = target();
            let status = FileStatus { mode: 0o640, modified: (5, 7), attributes: Vec::new() };
            let write =
                |content: &[u8], replace| write(&target, &path("f"), content, &status, replace);
            assert!(write(b"one", false).unwrap());
            assert!(!write(b"one", false).unwrap(), "the same content is there");
            assert_eq!(write(b"two", false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"one");
            assert!(write(b"two", true).unwrap());
            let stat = target.status(&path("f")).unwrap().unwrap();
            assert_eq!((stat.st_mode & 0o777, stat.st_mtime, stat.st_mtime_nsec), (0o640, 5, 7));
            assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"two");
            assert_eq!(names(dir.path()), ["f"], "nothing else remains");
        }
    }

    #[test]
    fn what_is_left_of_a_file_that_is_there_goes_unless_it_is_in_use() {
        let (dir, target) = target();
        fs::write(dir.path().join("f"), "whole").unwrap();
        left(&target, "f");
        let in_use = target.temp_file(&path("f"), true).unwrap();
        target.remove_leftover(&path("f"));
        assert_eq!(names(dir.path()).len(), 2);
        drop(in_use);
        target.remove_leftover(&path("f"));
        assert_eq!(names(dir.path()), ["f"]);
    }

    #[test]
    fn one_transfer_at_a_time_writes_a_file() {
        let (_dir, target) = target();
        let first = target.temp_file(&path("f"), true).unwrap();
        let second = target.temp_file(&path("f"), true);
        assert_eq!(second.err().unwrap().kind(), io::ErrorKind::WouldBlock);
        drop(first);
        assert!(target.temp_file(&path("f"), true).is_ok());
    }

    #[test]
    fn links_in_the_directory_are_not_followed() {
        let (dir, target) = target();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("victim"), "safe").unwrap();
        symlink(outside.path(), dir.path().join("way-out")).unwrap();
        symlink(outside.path().join("victim"), dir.path().join("f")).unwrap();
        assert!(target.temp_file(&path("way-out/victim"), false).is_err());
        assert!(target.make_directory(&path("way-out/new"), 0o755).is_err());
        assert!(target.make_directory(&path("way-out"), 0o755).is_err());
        assert!(target.open_file(&path("f")).is_err());
        // Replacing a link replaces the link, not what it points to.
        target.temp_file(&path("f"), false).unwrap().finish(&path("f"), true).unwrap();
        assert_eq!(fs::read(outside.path().join("victim")).unwrap(), b"safe");
        assert!(dir.path().join("f").symlink_metadata().unwrap().is_file());
    }

    #[test]
    fn a_sweep_takes_old_leftovers_and_nothing_else() {
        let (dir, target) = target();
        left(&target, "old");
        let old = dir.path().join(&names(dir.path())[0]);
        let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
        File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
        left(&target, "young");
        fs::write(dir.path().join(".sweetspot-mine.part"), "x").unwrap();
        assert_eq!(target.sweep().unwrap(), 1);
        assert!(!old.exists());
        assert_eq!(names(dir.path()).len(), 2);
    }

    #[test]
    fn links_and_names_are_made_once() {
        let (dir, target) = target();
        assert!(target.make_symlink(&path("l"), b"a", false).unwrap());
        assert!(!target.make_symlink(&path("l"), b"a", false).unwrap());
        assert!(target.make_symlink(&path("l"), b"b", false).is_err());
        assert!(target.make_symlink(&path("l"), b"b", true).unwrap());
        fs::write(dir.path().join("f"), "x").unwrap();
        assert!(target.make_hard_link(&path("f"), &path("g"), false).unwrap());
        assert!(!target.make_hard_link(&path("f"), &path("g"), false).unwrap());
        assert!(target.make_hard_link(&path("f"), &path("l"), false).is_err());
        assert!(target.make_hard_link(&path("f"), &path("l"), true).unwrap());
        assert_eq!(names(dir.path()), ["f", "g", "l"]);
    }
}
