use std::path::PathBuf;

use tempfile::TempDir;

/// A directory for the files that are moved; it vanishes with the returned handle. On a disk
/// where there is one: `/tmp` often is memory, and hundreds of megabytes there would press on
/// what is measured.
pub fn make() -> Result<TempDir, String> {
    let place = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    let place = if place.is_dir() { place } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("sweetspot-").tempdir_in(&place).map_err(|e| {
        format!("no room for temporary files in {}: {e}; set TMPDIR to another", place.display())
    })
}
