//! All captures of a directory, each by itself.

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
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Reads the captures in `directory`, by name; other files are left out.
pub fn read(directory: &Path, max: usize) -> Result<Vec<Entry>, String> {
    let name = directory.shown();
    let listing =
        fs::read_dir(directory).map_err(|error| format!("cannot list {name}: {error}"))?;
    let mut files: Vec<PathBuf> = listing
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file() && is_capture(path))
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

/// Whether the first four bytes are a capture's.
fn is_capture(path: &Path) -> bool {
    let mut head = [0; 4];
    let read = Input::file(path).open().is_ok_and(|mut file| file.read_exact(&mut head).is_ok());
    read && sweetspot_trace::file::is_capture(&head)
}
