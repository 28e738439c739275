use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sweetspot_linux::file;
use sweetspot_protocol::{FileName, TEMP_FILE_PREFIX};
use sweetspot_units::Bytes;

use crate::TransferError;

const TEMP_FILE_SUFFIX: &str = ".part";
/// Hexadecimal digits between prefix and suffix.
const RANDOM_DIGITS: usize = 32;

/// A file that is not yet whole: unpredictable name, locked while its process lives, gone when
/// dropped, unless it was [kept](TempFile::keep).
pub(crate) struct TempFile {
    file: File,
    path: PathBuf,
    kept: bool,
}

impl TempFile {
    /// A new file in `directory` with room for `size`.
    pub fn create(directory: &Path, size: Bytes) -> Result<TempFile, TransferError> {
        let fail = |source| TransferError::write(directory.to_owned(), source);
        let temp_file = loop {
            let mut random = [0; RANDOM_DIGITS / 2];
            getrandom::fill(&mut random).map_err(|e| fail(io::Error::other(e.to_string())))?;
            let name = format!("{TEMP_FILE_PREFIX}{}{TEMP_FILE_SUFFIX}", HEXLOWER.encode(&random));
            let path = directory.join(name);
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
                .map_err(fail)?;
            let temp_file = TempFile { file, path, kept: false };
            // Between creation and lock another process's sweep may have taken it for a leftover.
            let locked = file::try_lock(&temp_file.file).map_err(fail)?;
            if locked && temp_file.file.metadata().map_err(fail)?.nlink() > 0 {
                break temp_file;
            }
        };
        // Asked for now, so that a full disk is known before anything is sent.
        file::reserve(&temp_file.file, size).map_err(fail)?;
        Ok(temp_file)
    }

    /// The file to write to.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs the file to disk and gives it its final name, in one step. Without `overwrite` an existing file of that name
    /// stays, and the error is `Exists`.
    pub fn keep(
        mut self,
        directory: &Path,
        name: &FileName,
        overwrite: bool,
    ) -> Result<(), TransferError> {
        let target = directory.join(name.as_str());
        let fail = |source| TransferError::write(target.clone(), source);
        self.file.set_permissions(Permissions::from_mode(0o666 & !umask())).map_err(fail)?;
        self.file.sync_all().map_err(fail)?;
        if overwrite {
            fs::rename(&self.path, &target).map_err(fail)?;
        } else {
            file::rename_new(&self.path, &target).map_err(|e| match e.kind() {
                io::ErrorKind::AlreadyExists => TransferError::Exists(target.clone()),
                _ => fail(e),
            })?;
        }
        self.kept = true;
        File::open(directory).and_then(|d| d.sync_all()).map_err(fail)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the temporary files of dead processes from `directory`: those that nobody has locked. Returns how many.
pub(crate) fn sweep(directory: &Path) -> io::Result<usize> {
    let mut swept = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let ours = entry.file_name().to_str().is_some_and(is_partial_name)
            && entry.file_type().is_ok_and(|t| t.is_file());
        if !ours {
            continue;
        }
        let Ok(file) = File::open(entry.path()) else { continue };
        if file::try_lock(&file).unwrap_or(false) && fs::remove_file(entry.path()).is_ok() {
            swept += 1;
        }
    }
    Ok(swept)
}

fn is_partial_name(name: &str) -> bool {
    name.strip_prefix(TEMP_FILE_PREFIX)
        .and_then(|rest| rest.strip_suffix(TEMP_FILE_SUFFIX))
        .is_some_and(|digits| {
            digits.len() == RANDOM_DIGITS
                && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        })
}

/// The process's file mode mask. Read from /proc because umask(2) can only be read by setting it.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))
        .and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
        .unwrap_or(0o077)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn temp_file(directory: &Path, content: &[u8]) -> TempFile {
        let mut temp_file = TempFile::create(directory, Bytes::new(content.len() as u64)).unwrap();
        temp_file.file().write_all(content).unwrap();
        temp_file
    }

    #[test]
    fn what_is_dropped_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        drop(temp_file(dir.path(), b"x"));
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn what_is_kept_has_its_name_and_nothing_else_remains() {
        let dir = tempfile::tempdir().unwrap();
        let name = "f".parse().unwrap();
        temp_file(dir.path(), b"new").keep(dir.path(), &name, false).unwrap();
        assert_eq!(names(dir.path()), ["f"]);
        assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"new");
    }

    #[test]
    fn an_existing_file_stays_unless_forced() {
        let dir = tempfile::tempdir().unwrap();
        let name = "f".parse().unwrap();
        fs::write(dir.path().join("f"), "old").unwrap();
        let refused = temp_file(dir.path(), b"new").keep(dir.path(), &name, false);
        assert!(matches!(refused, Err(TransferError::Exists(_))));
        assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"old");
        temp_file(dir.path(), b"new").keep(dir.path(), &name, true).unwrap();
        assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["f"]);
    }

    #[test]
    fn overwriting_a_symlink_replaces_the_link_and_not_its_target() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let victim = outside.path().join("victim");
        fs::write(&victim, "safe").unwrap();
        std::os::unix::fs::symlink(&victim, dir.path().join("f")).unwrap();
        let name = "f".parse().unwrap();
        assert!(temp_file(dir.path(), b"new").keep(dir.path(), &name, false).is_err());
        temp_file(dir.path(), b"new").keep(dir.path(), &name, true).unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"safe");
    }

    #[test]
    fn a_sweep_takes_dead_leftovers_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let dead = format!("{TEMP_FILE_PREFIX}{}{TEMP_FILE_SUFFIX}", "0a".repeat(16));
        let strange = format!("{TEMP_FILE_PREFIX}mine{TEMP_FILE_SUFFIX}");
        for name in [&dead, &strange, &"other.part".to_owned()] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        let alive = temp_file(dir.path(), b"x");
        assert_eq!(sweep(dir.path()).unwrap(), 1);
        assert!(alive.path().exists() && !dir.path().join(&dead).exists());
        assert_eq!(names(dir.path()).len(), 3);
    }

    #[test]
    fn more_than_the_disk_holds_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        assert!(TempFile::create(dir.path(), Bytes::new(1 << 62)).is_err());
        assert!(names(dir.path()).is_empty());
    }
}
