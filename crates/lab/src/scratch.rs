use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A directory for the files that are moved, gone with its handle. On a disk where there is one:
/// `/tmp` often is memory, and hundreds of megabytes there would press on what is measured.
pub(crate) fn make() -> io::Result<TempDir> {
    let place = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    let place = if place.is_dir() { place } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("sweetspot-lab-").tempdir_in(place)
}

/// An empty directory in `parent`.
pub(crate) fn inbox(parent: &Path, number: usize) -> io::Result<PathBuf> {
    let path = parent.join(format!("inbox-{number}"));
    std::fs::create_dir(&path)?;
    Ok(path)
}
