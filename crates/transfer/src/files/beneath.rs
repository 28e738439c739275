//! Opens names below a directory without following links, so that no name leads out of it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Opens `path` below `root`. A link anywhere in `path` is an error (ELOOP or ENOTDIR), as is a path that
/// leaves `root`.
pub(crate) fn open_beneath(root: impl AsFd, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let (root, flags) = (root.as_fd(), flags | OFlags::CLOEXEC);
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(root, OsStr::from_bytes(path), flags, Mode::empty(), resolve) {
        // Kernels before 5.6 lack openat2(2), and older sandboxes forbid it.
        Err(Errno::NOSYS | Errno::PERM) => by_components(root, path, flags),
        opened => Ok(opened?),
    }
}

/// The same, one component at a time.
fn by_components(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let mut names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    // The callers pass only names. Any of these would lead the kernel elsewhere.
    if names.iter().any(|name| matches!(*name, b"" | b"." | b"..")) {
        return Err(Errno::XDEV.into());
    }
    let last = names.pop().unwrap_or_default();
    let open = |directory: &Option<OwnedFd>, name: &[u8], flags| {
        let from = directory.as_ref().map_or(root, AsFd::as_fd);
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(from, OsStr::from_bytes(name), flags, Mode::empty())
    };
    let mut directory = None;
    for name in names {
        directory = Some(open(&directory, name, OFlags::PATH | OFlags::DIRECTORY)?);
    }
    Ok(open(&directory, last, flags)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::io::Read;
    use std::os::unix::fs::symlink;

    /// `root/a/b` contains "inside". Beside the root is "outside", and links in the root lead there.
    fn scene() -> (tempfile::TempDir, File) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("a")).unwrap();
        fs::write(root.join("a/b"), "inside").unwrap();
        fs::create_dir(dir.path().join("other")).unwrap();
        fs::write(dir.path().join("other/b"), "outside").unwrap();
        symlink("../other", root.join("relative")).unwrap();
        symlink(dir.path().join("other"), root.join("absolute")).unwrap();
        symlink("../other/b", root.join("file")).unwrap();
        symlink("a", root.join("within")).unwrap();
        let root = File::open(root).unwrap();
        (dir, root)
    }

    fn read(opened: io::Result<OwnedFd>) -> io::Result<String> {
        let mut text = String::new();
        File::from(opened?).read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn no_path_escapes_the_directory_with_or_without_openat2() {
        let (dir, root) = scene();
        let absolute = dir.path().join("other/b").into_os_string().into_encoded_bytes();
        let bad: [&[u8]; 8] = [
            b"relative/b",
            b"absolute/b",
            b"file",
            b"within/b",
            b"../other/b",
            b"a/../../other/b",
            b"",
            &absolute,
        ];
        type Open = fn(BorrowedFd<'_>, &[u8], OFlags) -> io::Result<OwnedFd>;
        let ways: [Open; 2] = [|root, path, flags| open_beneath(root, path, flags), by_components];
        for open in ways {
            assert_eq!(read(open(root.as_fd(), b"a/b", OFlags::RDONLY)).unwrap(), "inside");
            for path in bad {
                let opened = read(open(root.as_fd(), path, OFlags::RDONLY));
                assert!(opened.is_err(), "{:?}: {opened:?}", String::from_utf8_lossy(path));
            }
        }
    }
}
