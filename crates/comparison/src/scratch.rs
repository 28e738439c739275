//! A temporary directory for the transferred files.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sweetspot_linux::file;
use tempfile::TempDir;

use crate::ComparisonError;

const PREFIX: &str = "sweetspot-demo-";

/// A directory for the transferred files. It is removed when this handle is dropped. If the process
/// is killed, the next one with a directory beside it removes it.
pub struct Scratch {
    directory: TempDir,
    /// Held as long as the directory is in use.
    _lock: File,
}

impl Scratch {
    /// Its path.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Creates a directory, on disk if possible: `/tmp` is often in memory, where hundreds of megabytes
/// would affect the measurement.
pub fn make() -> Result<Scratch, ComparisonError> {
    let place = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    let place = if place.is_dir() { place } else { std::env::temp_dir() };
    make_in(&place).map_err(|source| ComparisonError::Scratch { place, source })
}

fn make_in(place: &Path) -> io::Result<Scratch> {
    loop {
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
        let lock = File::open(directory.path())?;
        // Between creation and locking, another process may have removed it as a leftover.
        if file::try_lock(&lock)? && directory.path().is_dir() {
            sweep(place, lock.metadata()?.uid());
            return Ok(Scratch { directory, _lock: lock });
        }
    }
}

/// Removes what killed processes of `user` left in `place`: directories with this kind of name that
/// are not locked. Anything that cannot be removed stays.
fn sweep(place: &Path, user: u32) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && entry.metadata().is_ok_and(|m| m.is_dir() && m.uid() == user);
        let free = || File::open(entry.path()).and_then(|d| file::try_lock(&d)).unwrap_or(false);
        if ours && free() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_removes_abandoned_directories_and_keeps_those_in_use() -> io::Result<()> {
        let place = tempfile::tempdir()?;
        let used = make_in(place.path())?;
        let left = place.path().join("sweetspot-demo-left");
        let others = place.path().join("sweetspot-other");
        fs::create_dir(&left)?;
        fs::create_dir(&others)?;
        fs::write(left.join("content"), "x")?;
        sweep(place.path(), fs::metadata(&left)?.uid());
        assert!(used.path().is_dir() && others.is_dir());
        assert!(!left.exists());
        Ok(())
    }

    #[test]
    fn dropping_a_scratch_directory_removes_it() -> io::Result<()> {
        let place = tempfile::tempdir()?;
        drop(make_in(place.path())?);
        assert!(fs::read_dir(place.path())?.next().is_none());
        Ok(())
    }
}
