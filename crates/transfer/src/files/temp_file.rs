//! Partial files, under temporary names in the directory of their final name.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use data_encoding::HEXLOWER;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use sweetspot_linux::{clock, file, process};
use sweetspot_protocol::TEMP_FILE_PREFIX;
use sweetspot_units::{Bytes, Duration, Time};

use crate::wire::identity::random_bytes;

const TEMP_FILE_SUFFIX: &str = ".part";
/// Hexadecimal digits between prefix and suffix.
const NAME_DIGITS: usize = 32;
/// How long a partial file stays after an interruption, so that a later transfer can resume it.
const KEPT_FOR: Duration = Duration::from_secs(14 * 24 * 3600);
/// How long to wait for a file's lock: a transfer that has just ended may still be closing its files.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// The fate of a partial file when its transfer ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// It is removed.
    Never,
    /// It stays, so that a later transfer can resume it.
    Always,
    /// It stays unless the final name exists and must not be replaced: then no transfer could use it.
    UnlessNamed,
}

/// A file that is not yet complete. If it may outlive its transfer, its name is derived from the final name, so that a later
/// transfer finds it. A transfer locks it while it writes.
pub(crate) struct TempFile {
    pub file: File,
    directory: Arc<OwnedFd>,
    name: String,
    final_name: OsString,
    keep: Keep,
    holds_content: AtomicBool,
    done: AtomicBool,
}

impl TempFile {
    /// The partial file of `final_name`: left by `client` and untouched by other users, or a new one. The error is `WouldBlock`
    /// if another transfer keeps writing it.
    pub fn open(
        directory: Arc<OwnedFd>,
        final_name: &OsStr,
        client: Option<&str>,
        keep: Keep,
    ) -> io::Result<TempFile> {
        let (file, name) = match keep {
            Keep::Never => create_random(&directory)?,
            Keep::Always | Keep::UnlessNamed => open_partial(&directory, final_name, client)?,
        };
        let holds_content = (file.metadata()?.len() > 0).into();
        let (final_name, done) = (final_name.to_owned(), false.into());
        Ok(TempFile { file, directory, name, final_name, keep, holds_content, done })
    }

    /// Reserves disk space for the content in large portions, so that the file is contiguous. A file system in memory does not
    /// need that.
    pub fn reserve(&self, offset: Bytes, length: Bytes) -> io::Result<()> {
        if file::is_in_memory(&self.file) {
            return Ok(());
        }
        file::reserve(&self.file, offset, length)
    }

    /// Notes that the file holds content from which a later transfer can resume.
    pub fn holds_content(&self) {
        self.holds_content.store(true, Ordering::Release);
    }

    /// Gives the file its final name, atomically. The error is `AlreadyExists` if that name exists and must not be replaced.
    pub fn finish(&self, replace: bool) -> io::Result<()> {
        rename(&self.directory, &self.name, &self.final_name, replace)?;
        self.done.store(true, Ordering::Release);
        Ok(())
    }

    /// Removes the file: its content is no longer needed.
    pub fn discard(&self) {
        // If it cannot be removed it stays, as when it is dropped.
        let _ = rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty());
        self.done.store(true, Ordering::Release);
    }

    /// Whether a later transfer can resume it, so that it stays when it is dropped.
    pub fn is_of_use(&self) -> bool {
        if self.done.load(Ordering::Acquire) {
            return false;
        }
        let resumable = match self.keep {
            Keep::Never => false,
            Keep::Always => true,
            Keep::UnlessNamed => {
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::statat(&self.directory, &self.final_name, flags).is_err()
            }
        };
        resumable && self.holds_content.load(Ordering::Acquire)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if !self.done.load(Ordering::Acquire) && !self.is_of_use() {
            self.discard();
        }
    }
}

/// Whether a client's interrupted transfer left a partial file for `final_name`.
pub(crate) fn has_partial(directory: &OwnedFd, final_name: &OsStr, client: Option<&str>) -> bool {
    let name = partial_name(final_name, client);
    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|stat| stat.st_size > 0 && is_own(&stat))
}

/// Removes a client's partial file for `final_name`, unless a transfer is writing it.
pub(crate) fn remove_partial(directory: &OwnedFd, final_name: &OsStr, client: Option<&str>) {
    let name = partial_name(final_name, client);
    if let Ok(Some(file)) = open_own(directory, &name)
        && file::try_lock(&file).unwrap_or(false)
        && is_named(&file, directory, &name).unwrap_or(false)
    {
        let _ = rustix::fs::unlinkat(directory, &name, AtFlags::empty());
    }
}

/// Removes this user's partial files in `directory` that no transfer is writing and that are older than [`KEPT_FOR`]. Returns
/// their number.
pub(crate) fn sweep(directory: &OwnedFd) -> io::Result<usize> {
    let mut swept = 0;
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().ok().filter(|name| is_temp_name(name)) else {
            continue;
        };
        let Ok(Some(file)) = open_own(directory, name) else { continue };
        let age = rustix::fs::fstat(&file).map_or(Duration::ZERO, |stat| {
            let written = u64::try_from(stat.st_mtime).unwrap_or(0);
            clock::wall().since(Time::from_nanos(written.saturating_mul(1_000_000_000)))
        });
        let unlink = || rustix::fs::unlinkat(directory, name, AtFlags::empty());
        if age > KEPT_FOR && file::try_lock(&file).unwrap_or(false) && unlink().is_ok() {
            swept += 1;
        }
    }
    Ok(swept)
}

/// A new name that no other user can have predicted.
pub(crate) fn random_name() -> io::Result<String> {
    let drawn = random_bytes::<{ NAME_DIGITS / 2 }>("drawing a name").map_err(io::Error::other)?;
    Ok(temp_name(&drawn))
}

/// Renames the file `from` to `to`, atomically.
pub(crate) fn rename(directory: &OwnedFd, from: &str, to: &OsStr, replace: bool) -> io::Result<()> {
    if replace {
        return Ok(rustix::fs::renameat(directory, from, directory, to)?);
    }
    match rustix::fs::renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE) {
        // File systems without the flag (NFS, some FUSE), or sandboxes without renameat2(2): link(2) rejects an existing name,
        // too.
        Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => {
            rustix::fs::linkat(directory, from, directory, to, AtFlags::empty())?;
            Ok(rustix::fs::unlinkat(directory, from, AtFlags::empty())?)
        }
        other => Ok(other?),
    }
}

/// Replaces a file or a link by a new directory with this mode, atomically if the file system can.
pub(crate) fn replace_by_directory(
    directory: &OwnedFd,
    name: &OsStr,
    mode: Mode,
) -> io::Result<()> {
    let temporary = random_name()?;
    let exchange =
        || rustix::fs::renameat_with(directory, &temporary, directory, name, RenameFlags::EXCHANGE);
    rustix::fs::mkdirat(directory, &temporary, mode)?;
    let replaced = match exchange() {
        Ok(()) => {
            // Another entry may have taken the file's place: it stays.
            rustix::fs::unlinkat(directory, &temporary, AtFlags::empty()).inspect_err(|_| {
                let _ = exchange();
            })
        }
        Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => {
            rustix::fs::unlinkat(directory, name, AtFlags::empty())
                .and_then(|()| rustix::fs::renameat(directory, &temporary, directory, name))
        }
        other => other,
    };
    Ok(replaced.inspect_err(|_| {
        let _ = rustix::fs::unlinkat(directory, &temporary, AtFlags::REMOVEDIR);
    })?)
}

fn create_random(directory: &OwnedFd) -> io::Result<(File, String)> {
    let name = random_name()?;
    let file = create(directory, &name)?;
    file::try_lock(&file)?;
    Ok((file, name))
}

fn create(directory: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::CREATE | OFlags::EXCL;
    Ok(rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// The partial file with the name derived from `final_name`, locked. If another user has already created a file of that name, a
/// random name is used instead, and the transfer of this file cannot be resumed.
fn open_partial(
    directory: &OwnedFd,
    final_name: &OsStr,
    client: Option<&str>,
) -> io::Result<(File, String)> {
    let name = partial_name(final_name, client);
    let give_up = clock::now() + LOCK_TIMEOUT;
    loop {
        let file = match open_own(directory, &name)? {
            Some(file) => file,
            None => match create(directory, &name) {
                // Another transfer may have created it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if is_foreign(directory, &name) {
                        return create_random(directory);
                    }
                    continue;
                }
                created => created?,
            },
        };
        if !file::try_lock(&file)? {
            if clock::now() >= give_up {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            clock::sleep_until(clock::now() + LOCK_INTERVAL);
            continue;
        }
        if is_named(&file, directory, &name)? {
            return Ok((file, name));
        }
    }
}

/// Opens a file that a transfer of this user created and no other user can write; `None` if there is no such file.
fn open_own(directory: &OwnedFd, name: &str) -> io::Result<Option<File>> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        // No file, a link, a directory, a pipe or a socket, or a file of another user.
        Err(
            Errno::NOENT | Errno::LOOP | Errno::ISDIR | Errno::NXIO | Errno::ACCESS | Errno::PERM,
        ) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let stat = rustix::fs::fstat(&file)?;
    Ok(is_own(&stat).then_some(file))
}

/// Whether this user cannot use a partial file of that name. A file of this user that others could write, or that has further
/// names, is removed.
fn is_foreign(directory: &OwnedFd, name: &str) -> bool {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if is_own(&stat) && matches!(open_own(directory, name), Ok(Some(_))) => false,
        Ok(stat) if is_of_this_user(&stat) => {
            rustix::fs::unlinkat(directory, name, AtFlags::empty()).is_err()
        }
        Ok(_) => true,
        Err(_) => false,
    }
}

/// Whether a file is as a transfer leaves it: regular, of this user, not writable by others, and with one name. A killed transfer
/// may have left it with its final mode.
fn is_own(stat: &Stat) -> bool {
    is_of_this_user(stat) && stat.st_mode & 0o7022 == 0 && stat.st_nlink == 1
}

fn is_of_this_user(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_uid == process::effective_user()
}

/// Whether `file` still has that name. Between opening and locking, its owner may have renamed or removed it.
fn is_named(file: &File, directory: &OwnedFd, name: &str) -> io::Result<bool> {
    let opened = rustix::fs::fstat(file)?;
    let named = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    Ok(named.is_ok_and(|named| (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)))
}

/// The name of a client's partial file for `final_name`, in the same directory.
fn partial_name(final_name: &OsStr, client: Option<&str>) -> String {
    let mut hasher = blake3::Hasher::new();
    if let Some(client) = client {
        hasher.update(client.as_bytes()).update(&[0]);
    }
    hasher.update(final_name.as_bytes());
    temp_name(&hasher.finalize().as_bytes()[..NAME_DIGITS / 2])
}

fn temp_name(id: &[u8]) -> String {
    format!("{TEMP_FILE_PREFIX}{}{TEMP_FILE_SUFFIX}", HEXLOWER.encode(id))
}

fn is_temp_name(name: &str) -> bool {
    name.strip_prefix(TEMP_FILE_PREFIX)
        .and_then(|rest| rest.strip_suffix(TEMP_FILE_SUFFIX))
        .is_some_and(|digits| {
            digits.len() == NAME_DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit())
        })
}

/// Gives the name `name` to a file without a name, or as a hard link.
pub(crate) fn link(
    file: &(impl std::os::fd::AsFd + std::os::fd::AsRawFd),
    directory: &OwnedFd,
    name: &OsStr,
) -> Result<(), Errno> {
    match rustix::fs::linkat(file, "", directory, name, AtFlags::EMPTY_PATH) {
        // A descriptor alone is not sufficient before Linux 6.10 without CAP_DAC_READ_SEARCH. open(2) documents this way.
        Err(Errno::NOENT) => {
            let by_number = format!("/proc/self/fd/{}", file.as_raw_fd());
            rustix::fs::linkat(CWD, by_number, directory, name, AtFlags::SYMLINK_FOLLOW)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::io::{Read, Seek, Write};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::PathBuf;

    /// A directory, and the path of the partial file for "f" in it.
    fn directory() -> (tempfile::TempDir, Arc<OwnedFd>, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let partial = dir.path().join(partial_name(OsStr::new("f"), None));
        let fd = Arc::new(File::open(dir.path()).unwrap().into());
        (dir, fd, partial)
    }

    fn open(directory: &Arc<OwnedFd>, client: Option<&str>, keep: Keep) -> TempFile {
        TempFile::open(Arc::clone(directory), OsStr::new("f"), client, keep).unwrap()
    }

    /// The file that the next transfer finds and resumes.
    fn found(directory: &Arc<OwnedFd>, client: Option<&str>) -> String {
        let (mut text, mut partial) = (String::new(), open(directory, client, Keep::Always));
        partial.file.rewind().unwrap();
        partial.file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn only_the_client_that_left_a_partial_file_resumes_it() {
        let (_dir, directory, _) = directory();
        let mut left = open(&directory, Some("alice"), Keep::Always);
        left.file.write_all(b"hers").unwrap();
        left.holds_content();
        drop(left);
        assert_eq!(found(&directory, Some("bob")), "");
        assert_eq!(found(&directory, None), "");
        assert_eq!(found(&directory, Some("alice")), "hers");
    }

    #[test]
    fn space_is_reserved_on_disk_but_not_in_memory() {
        let length = Bytes::new(1 << 20);
        let shared_memory = PathBuf::from("/dev/shm");
        for place in [std::env::temp_dir(), shared_memory].iter().filter(|place| place.is_dir()) {
            let dir = tempfile::tempdir_in(place).unwrap();
            let temp = open(&Arc::new(File::open(dir.path()).unwrap().into()), None, Keep::Never);
            temp.reserve(Bytes::ZERO, length).unwrap();
            let plain = File::create(dir.path().join("plain")).unwrap();
            file::reserve(&plain, Bytes::ZERO, length).unwrap();
            let possible = plain.metadata().unwrap().blocks();
            let expected = if file::is_in_memory(&plain) { 0 } else { possible };
            let reserved = temp.file.metadata().unwrap();
            assert_eq!((reserved.len(), reserved.blocks()), (0, expected), "{}", place.display());
        }
    }

    #[test]
    fn a_file_prepared_by_another_user_gets_no_content() {
        // Files that another user could create with that name, given write access to the directory or a guess.
        let prepared: [fn(&PathBuf); 4] = [
            |path| {
                fs::write(path, "prepared").unwrap();
                fs::set_permissions(path, Permissions::from_mode(0o666)).unwrap();
            },
            |path| {
                fs::write(path, "prepared").unwrap();
                fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
                fs::hard_link(path, path.with_extension("second")).unwrap();
            },
            |path| std::os::unix::fs::symlink("elsewhere", path).unwrap(),
            |path| fs::create_dir(path).unwrap(),
        ];
        for prepare in prepared {
            let (dir, directory, partial) = directory();
            prepare(&partial);
            let before = fs::symlink_metadata(&partial).unwrap().ino();
            // Held open, so that no new file can reuse its inode.
            let _held = File::open(&partial).ok();
            assert!(!has_partial(&directory, OsStr::new("f"), None));
            let mut opened = open(&directory, None, Keep::Always);
            opened.file.write_all(b"content").unwrap();
            opened.finish(false).unwrap();
            let finished = fs::metadata(dir.path().join("f")).unwrap();
            assert_ne!(finished.ino(), before);
            assert_eq!((finished.nlink(), finished.mode() & 0o777), (1, 0o600));
            assert!(!dir.path().join("elsewhere").exists());
        }
    }

    #[test]
    fn a_partial_file_of_another_user_is_neither_used_nor_removed() {
        let (dir, directory, partial) = directory();
        fs::write(&partial, "theirs").unwrap();
        if std::os::unix::fs::chown(&partial, Some(1), Some(1)).is_err() {
            sweetspot_testing::skipped("changing owners needs root");
            return;
        }
        fs::set_permissions(&partial, Permissions::from_mode(0o600)).unwrap();
        assert!(!has_partial(&directory, OsStr::new("f"), None));
        remove_partial(&directory, OsStr::new("f"), None);
        let mut opened = open(&directory, None, Keep::Always);
        opened.file.write_all(b"content").unwrap();
        opened.finish(false).unwrap();
        assert_eq!(fs::metadata(dir.path().join("f")).unwrap().uid(), process::effective_user());
        assert_eq!(fs::read_to_string(&partial).unwrap(), "theirs");
    }

    #[test]
    fn a_partial_file_that_already_has_its_final_mode_is_resumed() {
        let (_dir, directory, partial) = directory();
        fs::write(&partial, "left").unwrap();
        fs::set_permissions(&partial, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(found(&directory, None), "left");
    }

    #[test]
    fn the_losers_partial_file_is_removed_if_the_winner_must_stay() {
        // How long the partial file is kept, whether another transfer has finished the file, and the files that remain.
        for (keep, won, remain) in [
            (Keep::UnlessNamed, true, vec!["f"]),
            (Keep::UnlessNamed, false, vec!["partial"]),
            (Keep::Always, true, vec!["partial", "f"]),
        ] {
            let (dir, directory, partial) = directory();
            let loser = open(&directory, None, keep);
            loser.holds_content();
            if won {
                fs::write(dir.path().join("f"), "winner").unwrap();
            }
            drop(loser);
            let all = [("partial", partial), ("f", dir.path().join("f"))];
            let remaining: Vec<_> =
                all.iter().filter(|(_, path)| path.exists()).map(|(name, _)| *name).collect();
            assert_eq!(remaining, remain, "{keep:?}");
        }
    }
}
