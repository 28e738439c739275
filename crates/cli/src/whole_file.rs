//! Writes a file atomically.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes `content` to a temporary file beside `path` and renames it when it is on the disk. A pipe
/// or a device is written directly. The error names the file and the next step.
pub fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    try_write(path, content).map_err(|error| {
        let step = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some room or name a file elsewhere"
            }
            io::ErrorKind::NotFound => "make the directory first",
            io::ErrorKind::PermissionDenied => "name a file in a directory you may write to",
            _ => "name another file",
        };
        format!("{}: {error}; {step}", path.display())
    })
}

fn try_write(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(content);
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
    let passing = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = File::create(&passing).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&passing, path)).inspect_err(|_| {
        // It may not exist.
        let _ = fs::remove_file(&passing);
    })
}
