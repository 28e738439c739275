use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The parent of temporary files: on disk if possible, because `/tmp` is often in memory, and
/// hundreds of megabytes there would disturb the measurement.
pub(crate) fn place() -> PathBuf {
    let place = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    if place.is_dir() { place } else { std::env::temp_dir() }
}

/// A temporary directory in `place`, removed with its handle.
pub(crate) fn make(place: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("sweetspot-lab-").tempdir_in(place)
}

/// An empty directory in `parent`.
pub(crate) fn inbox(parent: &Path, number: usize) -> io::Result<PathBuf> {
    let path = parent.join(format!("inbox-{number}"));
    std::fs::create_dir(&path)?;
    Ok(path)
}
