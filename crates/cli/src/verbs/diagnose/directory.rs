//! Diagnoses each capture in a directory separately.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sweetspot_diagnose::report::DiagnosisReport;

use super::capture;
use super::input::Input;
use sweetspot_program::print::Shown;

/// The diagnosis of one file of a directory.
#[derive(Debug, Serialize)]
pub struct Entry {
    /// The file.
    pub file: PathBuf,
    #[serde(flatten)]
    pub report: Option<DiagnosisReport>,
    /// Why there is no diagnosis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Reads the captures in `directory`, in the order of their names. Skips readable files that neither begin like a capture
/// nor have a capture's name.
pub fn read(directory: &Path, max: usize) -> Result<Vec<Entry>, String> {
    let name = directory.shown();
    let listing =
        fs::read_dir(directory).map_err(|error| format!("cannot list {name}: {error}"))?;
    let mut files: Vec<PathBuf> = listing
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file() && may_be_capture(path))
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(format!(
            "there is no capture in {name}; name a directory with pcap or pcapng files, compressed or not"
        ));
    }
    Ok(files.into_iter().map(|file| entry(file, max)).collect())
}

fn entry(file: PathBuf, max: usize) -> Entry {
    match capture::read(&Input::file(&file), max) {
        Ok(report) => Entry { file, report: Some(report), error: None },
        Err(error) => Entry { file, report: None, error: Some(error) },
    }
}

/// Whether a file begins like a capture, has a capture's name, or cannot be read.
fn may_be_capture(path: &Path) -> bool {
    has_name_of_capture(path)
        || match head(path) {
            Ok(head) => head.is_some_and(|head| sweetspot_trace::file::is_capture(&head)),
            Err(_) => true,
        }
}

/// The first four bytes; `None` if there are fewer, or if the compressed data is damaged.
fn head(path: &Path) -> Result<Option<[u8; 4]>, String> {
    let mut head = [0; 4];
    let read = Input::file(path).open()?.read_exact(&mut head);
    Ok(read.is_ok().then_some(head))
}

/// Whether the name has an extension used by tcpdump, Wireshark or snoop, compressed or not.
fn has_name_of_capture(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let plain = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    [".pcap", ".pcapng", ".cap", ".snoop"].iter().any(|end| plain.ends_with(end))
}
