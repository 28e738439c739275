//! Symbolic and hard links below the target directory.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use sweetspot_protocol::RelativePath;

use super::status::times;
use super::{TargetDirectory, is, name, special};
use crate::files::temp_file;

impl TargetDirectory {
    /// Creates a symbolic link, replacing another link or a file if `replace`. Returns false if it already existed.
    pub fn make_symlink(
        &self,
        path: &RelativePath,
        target: &[u8],
        replace: bool,
    ) -> io::Result<bool> {
        let target = OsStr::from_bytes(target);
        self.make_link(
            path,
            replace,
            |parent, name| rustix::fs::symlinkat(target, parent, name),
            |_, held| self.may_tell(held) && self.is_symlink_to(path, target.as_bytes()),
        )
    }

    /// Whether `path` is a symbolic link to `target`.
    pub fn is_symlink_to(&self, path: &RelativePath, target: &[u8]) -> bool {
        let Ok(parent) = self.parent(path) else { return false };
        rustix::fs::readlinkat(&parent, name(path), Vec::new())
            .is_ok_and(|held| held.as_bytes() == target)
    }

    /// Sets the time of a symbolic link that this transfer created, and notes that the client sent it.
    pub fn finish_symlink(&self, path: &RelativePath, modified: (i64, u32)) {
        // Some file systems store no times for links.
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

    /// The regular file at `path`, not opened for reading, and its status.
    pub fn named_file(&self, path: &RelativePath) -> io::Result<(OwnedFd, Stat)> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self.parent(path)?, name(path), flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        if is(&stat, FileType::RegularFile) { Ok((file, stat)) } else { Err(Errno::LOOP.into()) }
    }

    /// Gives `file`, which has this status, another name. Returns false if it already has that name.
    pub fn make_hard_link(
        &self,
        (file, stat): &(OwnedFd, Stat),
        path: &RelativePath,
        replace: bool,
    ) -> io::Result<bool> {
        self.make_link(
            path,
            replace,
            |parent, name| temp_file::link(file, parent, name),
            |_, held| (held.st_dev, held.st_ino) == (stat.st_dev, stat.st_ino),
        )
    }

    /// Creates a link at `path`, replacing another link or a file if `replace`. Returns false if it already exists
    /// (`is_there`).
    fn make_link(
        &self,
        path: &RelativePath,
        replace: bool,
        make: impl Fn(&OwnedFd, &OsStr) -> rustix::io::Result<()>,
        is_there: impl FnOnce(&OwnedFd, &Stat) -> bool,
    ) -> io::Result<bool> {
        let parent = self.parent(path)?;
        match make(&parent, name(path)) {
            Err(Errno::EXIST) => {}
            other => return Ok(other.map(|()| true)?),
        }
        let held = self.status(path)?;
        let keeps = !replace || held.as_ref().and_then(special).is_some();
        let same = held.is_some_and(|held| is_there(&parent, &held));
        if same || keeps {
            return if same { Ok(false) } else { Err(Errno::EXIST.into()) };
        }
        let temporary = temp_file::random_name()?;
        make(&parent, OsStr::new(&temporary))?;
        temp_file::rename(&parent, &temporary, name(path), true).inspect_err(|_| {
            let _ = rustix::fs::unlinkat(&parent, &temporary, AtFlags::empty());
        })?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::tests::{names, path, target};

    #[test]
    fn links_are_created_once_and_replaced_only_if_allowed() {
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
