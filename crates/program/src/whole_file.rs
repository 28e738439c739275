//! Writes a file atomically.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::print::Shown;

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
        format!("{}: {error}; {step}", path.shown())
    })
}

/// Whether there is a directory for `path`: asked before work that would be lost without one. `option` names the file.
pub fn has_place(option: &str, path: Option<&Path>) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match parent.map(fs::metadata) {
        Some(Err(error)) => {
            Err(format!("{option} {}: {error}; make the directory first", path.shown()))
        }
        Some(Ok(there)) if !there.is_dir() => {
            Err(format!("{option} {}: that is in no directory; name another file", path.shown()))
        }
        _ => Ok(()),
    }
}

fn try_write(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(content);
    }
    sweetspot_system::replace(path, content)
}
