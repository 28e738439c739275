//! The directory that a transfer writes into, by descriptors: no link in it is followed, and no name leaves it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use sweetspot_linux::process;
use sweetspot_protocol::RelativePath;
use sweetspot_units::Bytes;

use crate::TransferError;
use crate::files::beneath::open_beneath;
use crate::files::provenance::View;
use crate::files::temp_file::{self, Keep, TempFile};
use crate::lock::lock;

/// How many directories are kept open.
const MAX_OPEN_DIRECTORIES: usize = 64;

/// Where a receiver puts the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Into this directory, under the sender's names.
    Into(PathBuf),
    /// At this path, as scp does: into it if it is a directory, or if several files come; otherwise the file gets this name.
    At(PathBuf),
    /// One file, to standard output.
    Output,
}

/// A directory to write into.
pub(crate) struct TargetDirectory {
    root: Arc<OwnedFd>,
    open: Mutex<HashMap<Vec<u8>, Arc<OwnedFd>>>,
    view: View,
}

impl TargetDirectory {
    /// The directory at `path`, which must exist, as a transfer with this view sees it.
    pub fn open(path: &Path, view: View) -> io::Result<TargetDirectory> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let root = Arc::new(rustix::fs::openat(CWD, path, flags, Mode::empty())?);
        Ok(TargetDirectory { root, open: Mutex::default(), view })
    }

    /// The directory that holds `path`.
    pub fn parent(&self, path: &RelativePath) -> io::Result<Arc<OwnedFd>> {
        self.at(path.split().0)
    }

    fn directory(&self, path: &[u8]) -> io::Result<Arc<OwnedFd>> {
        let mut open = lock(&self.open);
        if let Some(directory) = open.get(path) {
            return Ok(Arc::clone(directory));
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY;
        let opened = Arc::new(open_beneath(&self.root, path, flags)?);
        if open.len() >= MAX_OPEN_DIRECTORIES {
            open.clear();
        }
        open.insert(path.to_owned(), Arc::clone(&opened));
        Ok(opened)
    }

    /// The status of `path` itself, without following a link; `None` if it does not exist.
    pub fn status(&self, path: &RelativePath) -> io::Result<Option<Stat>> {
        let parent = self.parent(path)?;
        match rustix::fs::statat(&parent, name(path), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a directory of this mode, in which its owner may write for now. Returns false if it was there already. The
    /// error is `AlreadyExists` if something else is.
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

    /// Notes that a transfer of this process made the directory at `path`; `None`: the directory itself.
    pub fn note_made(&self, path: Option<&[u8]>) -> io::Result<()> {
        let directory = self.at(path)?;
        self.view.provenance.note_directory(&directory)
    }

    /// Whether a transfer of this process made the directory at `path`; `None`: the directory itself.
    pub fn was_made(&self, path: Option<&[u8]>) -> io::Result<bool> {
        let directory = self.at(path)?;
        self.view.provenance.made(&directory)
    }

    /// Whether the peer may learn about the file with this status.
    pub fn may_tell(&self, stat: &Stat) -> bool {
        self.view.may_tell(stat)
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
        let same = self.status(path)?.is_some_and(|stat| self.may_tell(&stat))
            && rustix::fs::readlinkat(&parent, name(path), Vec::new())
                .is_ok_and(|held| held.as_bytes() == target.as_bytes());
        if same || !replace {
            return if same { Ok(false) } else { Err(Errno::EXIST.into()) };
        }
        let temporary = temp_file::random_name()?;
        rustix::fs::symlinkat(target, &parent, &temporary)?;
        temp_file::rename(&parent, &temporary, name(path), true).inspect_err(|_| {
            let _ = rustix::fs::unlinkat(&parent, &temporary, AtFlags::empty());
        })?;
        Ok(true)
    }

    /// Sets the time of a symbolic link that this transfer made, and notes that the client brought it.
    pub fn finish_symlink(&self, path: &RelativePath, modified: (i64, u32)) {
        // A file system may have no times for links.
        let _ = self.parent(path).map(|parent| {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::utimensat(&parent, name(path), &times(modified), flags)
        });
        if self.view.own_only
            && let Ok(Some(stat)) = self.status(path)
            && is(&stat, FileType::Symlink)
        {
            self.view.note_brought(&stat);
        }
    }

    /// Gives `path` itself an owner, without following a link, if it has another.
    pub fn give_owner(&self, path: &RelativePath, owner: (u32, u32)) -> io::Result<()> {
        let file = self.find(path)?;
        let stat = rustix::fs::fstat(&file)?;
        if (stat.st_uid, stat.st_gid) == owner {
            return Ok(());
        }
        let (user, group) = (Some(Uid::from_raw(owner.0)), Some(Gid::from_raw(owner.1)));
        Ok(rustix::fs::chownat(&file, "", user, group, AtFlags::EMPTY_PATH)?)
    }

    /// The regular file at `path`, not opened for reading, and its status.
    pub fn named_file(&self, path: &RelativePath) -> io::Result<(OwnedFd, Stat)> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self.parent(path)?, name(path), flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        if is(&stat, FileType::RegularFile) { Ok((file, stat)) } else { Err(Errno::LOOP.into()) }
    }

    /// Gives `file`, which has that status, another name. Returns false if it has it already.
    pub fn make_hard_link(
        &self,
        (file, stat): &(OwnedFd, Stat),
        path: &RelativePath,
        replace: bool,
    ) -> io::Result<bool> {
        let parent = self.parent(path)?;
        match temp_file::link(file, &parent, name(path)) {
            Err(Errno::EXIST) => {}
            other => return Ok(other.map(|()| true)?),
        }
        let same = self
            .status(path)?
            .is_some_and(|held| (held.st_dev, held.st_ino) == (stat.st_dev, stat.st_ino));
        if same || !replace {
            return if same { Ok(false) } else { Err(Errno::EXIST.into()) };
        }
        let temporary = temp_file::random_name()?;
        temp_file::link(file, &parent, OsStr::new(&temporary))?;
        temp_file::rename(&parent, &temporary, name(path), true).inspect_err(|_| {
            let _ = rustix::fs::unlinkat(&parent, &temporary, AtFlags::empty());
        })?;
        Ok(true)
    }

    /// Sets a directory's owner, mode and time.
    pub fn finish_directory(
        &self,
        path: &RelativePath,
        mode: u32,
        modified: (i64, u32),
        owner: Option<(u32, u32)>,
    ) -> io::Result<()> {
        let directory = self.directory(path.as_bytes())?;
        set_owner(&directory, owner)?;
        rustix::fs::fchmod(&directory, permissions(mode))?;
        Ok(rustix::fs::futimens(&directory, &times(modified))?)
    }

    /// Opens a regular file for reading. The error is `AlreadyExists` if the peer may not learn about it.
    pub fn open_file(&self, path: &RelativePath) -> io::Result<File> {
        let parent = self.parent(path)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&parent, name(path), flags, Mode::empty())?;
        if self.view.own_only && !self.may_tell(&rustix::fs::fstat(&file)?) {
            return Err(Errno::EXIST.into());
        }
        Ok(file.into())
    }

    /// Opens it again if it is still the file of this device and inode.
    pub fn open_same(&self, path: &RelativePath, id: (u64, u64)) -> io::Result<File> {
        let file = self.open_file(path)?;
        let metadata = file.metadata()?;
        let same = (metadata.dev(), metadata.ino()) == id;
        if same { Ok(file) } else { Err(io::Error::other("it changed meanwhile; send it again")) }
    }

    /// The names in a directory, in order; `None`: the directory itself.
    pub fn names(&self, path: Option<&[u8]>) -> io::Result<Vec<Vec<u8>>> {
        // Opened anew: a descriptor that others share has its place in the list.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = match path {
            Some(path) => open_beneath(&self.root, path, flags)?,
            None => rustix::fs::openat(&self.root, ".", flags, Mode::empty())?,
        };
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(directory)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The status of `name` in a directory, without following a link.
    pub fn status_in(&self, directory: Option<&[u8]>, name: &[u8]) -> io::Result<Stat> {
        let directory = self.at(directory)?;
        Ok(rustix::fs::statat(&directory, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Removes `name` from a directory; as a directory, which must be empty, or as anything else.
    pub fn remove(
        &self,
        directory: Option<&[u8]>,
        name: &[u8],
        is_directory: bool,
    ) -> io::Result<()> {
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        Ok(rustix::fs::unlinkat(self.at(directory)?, OsStr::from_bytes(name), flags)?)
    }

    fn at(&self, directory: Option<&[u8]>) -> io::Result<Arc<OwnedFd>> {
        directory.map_or_else(|| Ok(Arc::clone(&self.root)), |path| self.directory(path))
    }

    /// Opens `path` for its status only.
    pub fn find(&self, path: &RelativePath) -> io::Result<File> {
        let parent = self.parent(path)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&parent, name(path), flags, Mode::empty())?.into())
    }

    /// Whether a file of that name has content of this length and hash.
    fn has_content(
        &self,
        path: &RelativePath,
        length: u64,
        hash: &blake3::Hash,
    ) -> io::Result<bool> {
        let file = self.open_file(path)?;
        let metadata = file.metadata()?;
        // A file of another length need not be read.
        if !metadata.is_file() || metadata.len() != length {
            return Ok(false);
        }
        Ok(blake3::Hasher::new().update_reader(file)?.finalize() == *hash)
    }

    /// The unfinished file of `path`, new or left by a transfer that was interrupted. The error is `WouldBlock` if
    /// another transfer writes it, and goes on to.
    pub fn temp_file(&self, path: &RelativePath, keep: Keep) -> io::Result<TempFile> {
        TempFile::open(self.parent(path)?, name(path), self.view.client.as_deref(), keep)
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
        // Without a name until it is complete: nothing is left of it when this process is killed.
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
        match temp_file::link(&unnamed, &directory, name(path)) {
            Err(Errno::EXIST) if replace => self.write_named(path, content, status, replace),
            Err(Errno::EXIST)
                if self.has_content(path, content.len() as u64, &blake3::hash(content))? =>
            {
                Ok(false)
            }
            Err(error) => Err(error.into()),
            Ok(()) => {
                self.note_brought(&unnamed)?;
                Ok(true)
            }
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
        let temp_file = self.temp_file(path, Keep::Never)?;
        (&temp_file.file).write_all(content)?;
        status.give(&temp_file.file)?;
        self.finish(&temp_file, path, replace, || blake3::hash(content))
    }

    /// Gives `temp_file`, with this content hash, its final name. Returns false if another transfer of the same content was
    /// faster: for example by a sender that was killed after it had sent this file.
    pub fn finish(
        &self,
        temp_file: &TempFile,
        path: &RelativePath,
        replace: bool,
        hash: impl FnOnce() -> blake3::Hash,
    ) -> io::Result<bool> {
        match temp_file.finish(replace) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // No later transfer could use it.
                temp_file.discard();
                let length = temp_file.file.metadata()?.len();
                if self.has_content(path, length, &hash())? { Ok(false) } else { Err(error) }
            }
            finished => {
                finished?;
                self.note_brought(&temp_file.file)?;
                Ok(true)
            }
        }
    }

    /// Notes that the client brought this file, with its final length and time.
    fn note_brought(&self, file: &File) -> io::Result<()> {
        if self.view.own_only {
            self.view.note_brought(&rustix::fs::fstat(file)?);
        }
        Ok(())
    }

    /// Whether an interrupted transfer left something of `path`.
    pub fn has_temp_file(&self, path: &RelativePath) -> bool {
        let client = self.view.client.as_deref();
        self.parent(path).is_ok_and(|parent| temp_file::has_partial(&parent, name(path), client))
    }

    /// Removes the remains of a transfer that was interrupted while another one finished `path`. If a transfer uses them, they
    /// stay.
    pub fn remove_leftover(&self, path: &RelativePath) {
        if self.has_temp_file(path)
            && let Ok(parent) = self.parent(path)
        {
            temp_file::remove_partial(&parent, name(path), self.view.client.as_deref());
        }
    }

    /// Whether there is space for `size` more bytes; true if that is unknown.
    pub fn has_room(&self, size: Bytes) -> bool {
        rustix::fs::fstatvfs(&self.root)
            .is_ok_and(|room| size.get() <= room.f_bavail.saturating_mul(room.f_frsize))
    }

    /// Writes everything that was written below it to disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.root)?)
    }

    /// Writes one file and its name to disk.
    pub fn sync_file(&self, path: &RelativePath) -> io::Result<()> {
        self.open_file(path)?.sync_all()?;
        sync_parent(self, path)
    }

    /// Removes old leftovers at the top. Returns their number.
    pub fn sweep(&self) -> io::Result<usize> {
        temp_file::sweep(&self.root)
    }
}

/// The attributes of a file.
pub(crate) struct FileStatus {
    pub mode: u32,
    pub modified: (i64, u32),
    /// User and group, where this end takes them.
    pub owner: Option<(u32, u32)>,
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

impl FileStatus {
    /// Gives `file` these extended attributes, owner, permissions and time of the last change.
    pub fn give(&self, file: &File) -> io::Result<()> {
        let flags = rustix::fs::XattrFlags::empty();
        for (name, value) in &self.attributes {
            rustix::fs::fsetxattr(file, OsStr::from_bytes(name), value, flags)?;
        }
        set_owner_mode_and_time(file, self)
    }
}

/// Syncs the directory that holds `path`, so that its name survives a power cut.
pub(crate) fn sync_parent(target: &TargetDirectory, path: &RelativePath) -> io::Result<()> {
    Ok(rustix::fs::fsync(target.parent(path)?.as_fd())?)
}

/// Sets the owner if there is one, permissions and time of the last change.
pub(crate) fn set_owner_mode_and_time(file: &File, status: &FileStatus) -> io::Result<()> {
    set_owner(file, status.owner)?;
    rustix::fs::fchmod(file, permissions(status.mode))?;
    Ok(rustix::fs::futimens(file, &times(status.modified))?)
}

fn set_owner(file: impl AsFd, owner: Option<(u32, u32)>) -> io::Result<()> {
    let Some((user, group)) = owner else { return Ok(()) };
    Ok(rustix::fs::fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?)
}

/// The permissions that a file of the peer's `mode` gets: never set-id or sticky bits, and less the umask.
fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o777 & !process::umask())
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

fn times((seconds, nanoseconds): (i64, u32)) -> Timestamps {
    let modified = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.min(999_999_999).into() };
    let unchanged = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    Timestamps { last_access: unchanged, last_modification: modified }
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
        let target = TargetDirectory::open(dir.path(), View::default()).unwrap();
        (dir, target)
    }

    /// An unfinished file, left behind.
    fn left(target: &TargetDirectory, name: &str) {
        let mut left = target.temp_file(&path(name), Keep::Always).unwrap();
        left.file.write_all(b"x").unwrap();
        left.holds_content();
    }

    #[test]
    fn what_is_finished_has_its_name_and_nothing_else_remains() {
        let (dir, target) = target();
        let mut temp = target.temp_file(&path("f"), Keep::Always).unwrap();
        temp.file.write_all(b"new").unwrap();
        temp.finish(false).unwrap();
        assert_eq!(names(dir.path()), ["f"]);
        assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"new");
    }

    #[test]
    fn what_is_dropped_goes_unless_it_is_to_be_kept() {
        let (dir, target) = target();
        drop(target.temp_file(&path("f"), Keep::Never).unwrap());
        drop(target.temp_file(&path("f"), Keep::Always).unwrap());
        assert!(names(dir.path()).is_empty());
        left(&target, "f");
        assert!(names(dir.path())[0].starts_with(".sweetspot-"));
    }

    #[test]
    fn an_existing_file_stays_unless_it_may_be_replaced() {
        let (dir, target) = target();
        fs::write(dir.path().join("f"), "old").unwrap();
        let refused = target.temp_file(&path("f"), Keep::Never).unwrap().finish(false);
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"old");
        assert_eq!(names(dir.path()), ["f"]);
        target.temp_file(&path("f"), Keep::Never).unwrap().finish(true).unwrap();
        assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"");
    }

    #[test]
    fn content_is_known_by_its_hash_and_what_is_discarded_is_gone() {
        let (dir, target) = target();
        fs::write(dir.path().join("f"), "there").unwrap();
        assert!(target.has_content(&path("f"), 5, &blake3::hash(b"there")).unwrap());
        assert!(!target.has_content(&path("f"), 5, &blake3::hash(b"other")).unwrap());
        left(&target, "f");
        target.temp_file(&path("f"), Keep::Always).unwrap().discard();
        assert_eq!(names(dir.path()), ["f"]);
    }

    type Writing =
        fn(&TargetDirectory, &RelativePath, &[u8], &FileStatus, bool) -> io::Result<bool>;

    #[test]
    fn a_small_file_has_its_name_when_it_is_whole_by_either_way() {
        const WAYS: [Writing; 2] = [TargetDirectory::write_small, TargetDirectory::write_named];
        for write in WAYS {
            let (dir, target) = target();
            let status =
                FileStatus { mode: 0o640, modified: (5, 7), owner: None, attributes: Vec::new() };
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
        let in_use = target.temp_file(&path("f"), Keep::Always).unwrap();
        target.remove_leftover(&path("f"));
        assert_eq!(names(dir.path()).len(), 2);
        drop(in_use);
        target.remove_leftover(&path("f"));
        assert_eq!(names(dir.path()), ["f"]);
    }

    #[test]
    fn one_transfer_at_a_time_writes_a_file() {
        let (_dir, target) = target();
        let first = target.temp_file(&path("f"), Keep::Always).unwrap();
        let second = target.temp_file(&path("f"), Keep::Always);
        assert_eq!(second.err().unwrap().kind(), io::ErrorKind::WouldBlock);
        drop(first);
        assert!(target.temp_file(&path("f"), Keep::Always).is_ok());
    }

    #[test]
    fn links_in_the_directory_are_not_followed() {
        let (dir, target) = target();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("victim"), "safe").unwrap();
        symlink(outside.path(), dir.path().join("way-out")).unwrap();
        symlink(outside.path().join("victim"), dir.path().join("f")).unwrap();
        assert!(target.temp_file(&path("way-out/victim"), Keep::Never).is_err());
        assert!(target.make_directory(&path("way-out/new"), 0o755).is_err());
        assert!(target.make_directory(&path("way-out"), 0o755).is_err());
        assert!(target.open_file(&path("f")).is_err());
        // Replacing a link replaces the link, not its target.
        target.temp_file(&path("f"), Keep::Never).unwrap().finish(true).unwrap();
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
        let file = target.named_file(&path("f")).unwrap();
        let link = |name: &str, replace| target.make_hard_link(&file, &path(name), replace);
        assert!(link("g", false).unwrap());
        assert!(!link("g", false).unwrap());
        assert!(target.named_file(&path("l")).is_err(), "a symbolic link gets no second name");
        assert!(link("l", false).is_err());
        assert!(link("l", true).unwrap());
        assert_eq!(names(dir.path()), ["f", "g", "l"]);
    }
}
