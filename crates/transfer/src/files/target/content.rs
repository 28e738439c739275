//! Content below the target directory: partial files, and their final names.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sweetspot_protocol::RelativePath;

use super::status::FileStatus;
use super::{TargetDirectory, name};
use crate::files::temp_file::{self, Keep, TempFile};

impl TargetDirectory {
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

    /// Opens the file again if it still has this device and inode.
    pub fn open_same(&self, path: &RelativePath, id: (u64, u64)) -> io::Result<File> {
        let file = self.open_file(path)?;
        let metadata = file.metadata()?;
        let same = (metadata.dev(), metadata.ino()) == id;
        if same {
            Ok(file)
        } else {
            Err(io::Error::other("it changed in the meantime; send it again"))
        }
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

    /// The partial file of `path`, new or left by an interrupted transfer. The error is `WouldBlock` if another transfer keeps
    /// writing it.
    pub fn temp_file(&self, path: &RelativePath, keep: Keep) -> io::Result<TempFile> {
        TempFile::open(self.parent(path)?, name(path), self.view.client.as_deref(), keep)
    }

    /// Writes a file of one piece in as few system calls as possible. It gets its name only once it is complete. Returns false
    /// if another transfer has written the same content meanwhile.
    pub fn write_small(
        &self,
        path: &RelativePath,
        content: &[u8],
        status: &FileStatus,
        replace: bool,
    ) -> io::Result<bool> {
        let directory = self.parent(path)?;
        // Without a name until it is complete, so that nothing remains if this process is killed.
        let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        let unnamed = match rustix::fs::openat(&directory, ".", flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => File::from(file),
            // File systems without unnamed files: NFS, some FUSE.
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

    /// As [`TargetDirectory::write_small`], under a temporary name at first.
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

    /// Gives `temp_file`, with this content hash, its final name. Returns false if another transfer has already written the
    /// same content, for example from a sender that was killed after sending this file.
    pub fn finish(
        &self,
        temp_file: &TempFile,
        path: &RelativePath,
        replace: bool,
        hash: impl FnOnce() -> blake3::Hash,
    ) -> io::Result<bool> {
        // The existing file may have appeared since this one was planned.
        let finished = match replace && self.is_special(path)? {
            true => Err(Errno::EXIST.into()),
            false => temp_file.finish(replace),
        };
        match finished {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // No later transfer could use the partial file.
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

    /// Notes that the client sent this file, with its final length and time.
    fn note_brought(&self, file: &File) -> io::Result<()> {
        if self.view.own_only {
            self.view.note_brought(&rustix::fs::fstat(file)?);
        }
        Ok(())
    }

    /// Whether an interrupted transfer left a partial file for `path`.
    pub fn has_temp_file(&self, path: &RelativePath) -> bool {
        let client = self.view.client.as_deref();
        self.parent(path).is_ok_and(|parent| temp_file::has_partial(&parent, name(path), client))
    }

    /// Removes the partial file of an interrupted transfer after another transfer has finished `path`, unless a transfer is
    /// using it.
    pub fn remove_leftover(&self, path: &RelativePath) {
        if self.has_temp_file(path)
            && let Ok(parent) = self.parent(path)
        {
            temp_file::remove_partial(&parent, name(path), self.view.client.as_deref());
        }
    }

    /// Syncs one file and its name to disk.
    pub fn sync_file(&self, path: &RelativePath) -> io::Result<()> {
        self.open_file(path)?.sync_all()?;
        self.sync_parent(path)
    }

    /// Syncs the directory of `path`, so that the name survives a power failure.
    pub fn sync_parent(&self, path: &RelativePath) -> io::Result<()> {
        Ok(rustix::fs::fsync(self.parent(path)?.as_fd())?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{left, names, path, target};
    use super::*;
    use std::fs;

    #[test]
    fn a_finished_file_has_its_name_and_leaves_nothing_else() {
        let (dir, target) = target();
        let mut temp = target.temp_file(&path("f"), Keep::Always).unwrap();
        temp.file.write_all(b"new").unwrap();
        temp.finish(false).unwrap();
        assert_eq!(names(dir.path()), ["f"]);
        assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"new");
    }

    #[test]
    fn a_dropped_temp_file_is_removed_unless_kept() {
        let (dir, target) = target();
        drop(target.temp_file(&path("f"), Keep::Never).unwrap());
        drop(target.temp_file(&path("f"), Keep::Always).unwrap());
        assert!(names(dir.path()).is_empty());
        left(&target, "f");
        assert!(names(dir.path())[0].starts_with(".sweetspot-"));
    }

    #[test]
    fn an_existing_file_is_replaced_only_if_allowed() {
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
    fn content_matches_by_hash_and_discarded_files_are_removed() {
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
    fn either_method_writes_a_small_file_and_leaves_nothing_else() {
        const WAYS: [Writing; 2] = [TargetDirectory::write_small, TargetDirectory::write_named];
        for write in WAYS {
            let (dir, target) = target();
            let status = FileStatus {
                mode: 0o640,
                modified: Some((5, 7)),
                owner: None,
                attributes: Vec::new(),
            };
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
    fn a_leftover_of_an_existing_file_is_removed_unless_in_use() {
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
    fn only_one_transfer_at_a_time_writes_a_file() {
        let (_dir, target) = target();
        let first = target.temp_file(&path("f"), Keep::Always).unwrap();
        let second = target.temp_file(&path("f"), Keep::Always);
        assert_eq!(second.err().unwrap().kind(), io::ErrorKind::WouldBlock);
        drop(first);
        assert!(target.temp_file(&path("f"), Keep::Always).is_ok());
    }
}
