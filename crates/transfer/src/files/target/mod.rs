//! The directory that a transfer writes into. All access is by descriptors: no link in it is followed, and no name leads out of
//! it.

mod content;
mod links;
pub mod status;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;
use sweetspot_protocol::{Printable, RelativePath};
use sweetspot_units::Bytes;

use crate::TransferError;
use crate::files::beneath::open_beneath;
use crate::files::provenance::View;
use crate::files::temp_file;
use crate::lock::lock;
use status::{FileStatus, permissions, set_owner, times};

const MAX_OPEN_DIRECTORIES: usize = 64;

/// The destination of received files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Into this directory, under the sender's names.
    Into(PathBuf),
    /// At this path, as in rsync. A single file gets this name, unless the path is a directory or ends with a slash. Anything
    /// else goes into the directory, which is created if it is missing.
    At(PathBuf),
    /// To standard output, for a single file.
    Output,
}

pub(crate) struct TargetDirectory {
    /// The directory's path, for messages to this end's user.
    path: PathBuf,
    root: Arc<OwnedFd>,
    open: Mutex<HashMap<Vec<u8>, Arc<OwnedFd>>>,
    view: View,
}

impl TargetDirectory {
    /// Opens the existing directory at `path` for a transfer with this view.
    pub fn open(path: &Path, view: View) -> io::Result<TargetDirectory> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let root = Arc::new(rustix::fs::openat(CWD, path, flags, Mode::empty())?);
        Ok(TargetDirectory { path: path.to_owned(), root, open: Mutex::default(), view })
    }

    /// The path of a name in the directory, for messages to this end's user.
    pub fn shown(&self, below: &str) -> String {
        if self.path == Path::new(".") {
            return below.to_owned();
        }
        let directory = Printable(&self.path).to_string();
        format!("{}/{below}", directory.trim_end_matches('/'))
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

    /// The status of the target of `path`, following links; `None` if it does not exist.
    pub fn followed_status(&self, path: &RelativePath) -> Option<Stat> {
        let parent = self.parent(path).ok()?;
        rustix::fs::statat(&parent, name(path), AtFlags::empty()).ok()
    }

    /// Whether a device, a pipe or a socket has that name.
    pub fn is_special(&self, path: &RelativePath) -> io::Result<bool> {
        Ok(self.status(path)?.as_ref().and_then(special).is_some())
    }

    /// Creates a directory with this mode, to which its owner may write for now. Returns false if it already existed. The error
    /// is `AlreadyExists` if the name is not a directory.
    pub fn make_directory(&self, path: &RelativePath, mode: u32) -> io::Result<bool> {
        let parent = self.parent(path)?;
        match rustix::fs::mkdirat(&parent, name(path), while_filled(mode)) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => match self.status(path)? {
                Some(stat) if is(&stat, FileType::Directory) => Ok(false),
                _ => Err(Errno::EXIST.into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces a file or a link by a new directory, as [`TargetDirectory::make_directory`] does. A link is not followed.
    pub fn replace_by_directory(&self, path: &RelativePath, mode: u32) -> io::Result<()> {
        temp_file::replace_by_directory(&*self.parent(path)?, name(path), while_filled(mode))
    }

    /// Removes an empty directory, so that another entry can take its place. The error is `IsADirectory` if it is not empty.
    pub fn remove_empty(&self, path: &RelativePath) -> io::Result<()> {
        let parent = self.parent(path)?;
        match rustix::fs::unlinkat(&parent, name(path), AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => Err(Errno::ISDIR.into()),
            removed => Ok(removed?),
        }
    }

    /// Whether `path` is an empty directory, as far as this process can see.
    pub fn is_empty(&self, path: &RelativePath) -> bool {
        self.names(Some(path.as_bytes())).is_ok_and(|names| names.is_empty())
    }

    /// Notes that a transfer of this process created the directory at `path`; `None`: the target directory itself.
    pub fn note_made(&self, path: Option<&[u8]>) -> io::Result<()> {
        let directory = self.at(path)?;
        self.view.provenance.note_directory(&directory)
    }

    /// Whether a transfer of this process created the directory at `path`; `None`: the target directory itself.
    pub fn was_made(&self, path: Option<&[u8]>) -> io::Result<bool> {
        let directory = self.at(path)?;
        self.view.provenance.made(&directory)
    }

    /// Whether the peer may learn about the file with this status.
    pub fn may_tell(&self, stat: &Stat) -> bool {
        self.view.may_tell(stat)
    }

    /// Gives an existing file the attributes that it lacks. Returns whether any were missing.
    pub fn update(
        &self,
        path: &RelativePath,
        status: &FileStatus,
        exact: bool,
    ) -> io::Result<bool> {
        let file = self.find(path)?;
        let differences = status.differences(&file, exact)?;
        if differences.is_empty() {
            return Ok(false);
        }
        status.mend(&file, &differences)?;
        if self.view.own_only {
            self.view.note_brought(&rustix::fs::fstat(&file)?);
        }
        Ok(true)
    }

    /// Whether an existing file lacks attributes.
    pub fn is_outdated(
        &self,
        path: &RelativePath,
        status: &FileStatus,
        exact: bool,
    ) -> io::Result<bool> {
        Ok(!status.differences(&self.find(path)?, exact)?.is_empty())
    }

    /// Sets the owner of `path` itself, without following a link. Returns false if the owner is already right.
    pub fn give_owner(&self, path: &RelativePath, owner: (u32, u32)) -> io::Result<bool> {
        let file = self.find(path)?;
        let stat = rustix::fs::fstat(&file)?;
        if (stat.st_uid, stat.st_gid) == owner {
            return Ok(false);
        }
        let (user, group) = (Some(Uid::from_raw(owner.0)), Some(Gid::from_raw(owner.1)));
        rustix::fs::chownat(&file, "", user, group, AtFlags::EMPTY_PATH)?;
        Ok(true)
    }

    /// Sets the time of the target directory itself.
    pub fn set_time(&self, modified: (i64, u32)) -> io::Result<()> {
        Ok(rustix::fs::futimens(&self.root, &times(modified))?)
    }

    /// Sets the owner, mode and time of a directory; `None`: the target directory itself. Returns whether owner or mode changed.
    pub fn finish_directory(
        &self,
        path: Option<&RelativePath>,
        mode: u32,
        modified: (i64, u32),
        owner: Option<(u32, u32)>,
    ) -> io::Result<bool> {
        let directory = self.at(path.map(RelativePath::as_bytes))?;
        let differs = directory_differs(&rustix::fs::fstat(&directory)?, mode, owner);
        set_owner(&directory, owner)?;
        rustix::fs::fchmod(&directory, permissions(mode))?;
        rustix::fs::futimens(&directory, &times(modified))?;
        Ok(differs)
    }

    /// The names in a directory, sorted; `None`: the target directory itself.
    pub fn names(&self, path: Option<&[u8]>) -> io::Result<Vec<Vec<u8>>> {
        // Opened again, because a shared descriptor also shares its read position.
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

    /// Whether the disk has space for `size` more bytes; true if that is unknown.
    pub fn has_room(&self, size: Bytes) -> bool {
        rustix::fs::fstatvfs(&self.root)
            .is_ok_and(|room| size.get() <= room.f_bavail.saturating_mul(room.f_frsize))
    }

    /// Syncs the file system of the directory to disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.root)?)
    }

    /// Removes old partial files in the directory itself. Returns their number.
    pub fn sweep(&self) -> io::Result<usize> {
        temp_file::sweep(&self.root)
    }
}

/// The mode of a new directory, to which its owner may write for now.
fn while_filled(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o777) | Mode::RWXU
}

/// Whether a directory has another owner or mode than wanted. Its time does not count, because it changes with the contents.
pub(crate) fn directory_differs(stat: &Stat, mode: u32, owner: Option<(u32, u32)>) -> bool {
    stat.st_mode & 0o777 != permissions(mode).as_raw_mode()
        || owner.is_some_and(|owner| owner != (stat.st_uid, stat.st_gid))
}

/// Whether `stat` has this file type.
pub(crate) fn is(stat: &Stat, file_type: FileType) -> bool {
    FileType::from_raw_mode(stat.st_mode) == file_type
}

/// The name for a device, a pipe or a socket, which no file may replace; `None` for other files.
pub(crate) fn special(stat: &Stat) -> Option<&'static str> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::CharacterDevice | FileType::BlockDevice => Some("device"),
        FileType::Fifo => Some("pipe"),
        FileType::Socket => Some("socket"),
        _ => None,
    }
}

/// The error for a failed operation on `path`. [`IncomingFiles::note_failure`](super::incoming) adds the directory for this end's
/// user.
pub(crate) fn failed(path: &RelativePath, error: io::Error) -> TransferError {
    TransferError::write(PathBuf::from(path.to_string()), error)
}

fn name(path: &RelativePath) -> &OsStr {
    OsStr::from_bytes(path.split().1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use crate::files::temp_file::Keep;

    pub fn path(text: &str) -> RelativePath {
        RelativePath::new(text).unwrap()
    }

    pub fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub fn target() -> (tempfile::TempDir, TargetDirectory) {
        let dir = tempfile::tempdir().unwrap();
        let target = TargetDirectory::open(dir.path(), View::default()).unwrap();
        (dir, target)
    }

    /// Creates a partial file, as an interrupted transfer leaves it.
    pub fn left(target: &TargetDirectory, name: &str) {
        let mut left = target.temp_file(&path(name), Keep::Always).unwrap();
        left.file.write_all(b"x").unwrap();
        left.holds_content();
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
    fn a_sweep_removes_only_old_leftovers() {
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
}
