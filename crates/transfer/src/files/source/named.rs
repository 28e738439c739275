//! The sources as they were named.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sweetspot_protocol::{PeerText, RelativePath};

use super::{Patterns, Sources, unreadable};
use crate::{Result, TransferError};

pub(super) struct SourcePath {
    pub path: PathBuf,
    /// Its name at the receiver; `None`: its contents go to the top.
    pub name: Option<Vec<u8>>,
    pub standard_input: bool,
    pub is_directory: bool,
}

/// The sources that are there, and why each of the others cannot be sent. Fails if there are only others.
pub(super) fn found(sources: &Sources) -> Result<(Vec<SourcePath>, Vec<String>)> {
    let (mut tops, mut missing) = (Vec::new(), Vec::new());
    for path in &sources.paths {
        match SourcePath::new(path, sources.name.as_deref()) {
            Ok(top) => tops.push(top),
            Err(error @ TransferError::Unreadable { .. }) if sources.paths.len() > 1 => {
                missing.push(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    if tops.is_empty() { Err(none_left(missing)) } else { Ok((tops, missing)) }
}

/// The error for sources that are all excluded or `missing`.
pub(super) fn none_left(missing: Vec<String>) -> TransferError {
    match missing.len() as u64 {
        0 => TransferError::NothingToSend("every source is excluded".into()),
        count => TransferError::NothingMoved { failures: missing, count, by_peer: false },
    }
}

/// Of two files with one name the second would replace the first, at each run anew.
pub(super) fn distinct(tops: &[SourcePath]) -> Result<()> {
    let names: Vec<&[u8]> = tops.iter().filter_map(|top| top.name.as_deref()).collect();
    let repeated = (1..names.len()).find(|n| names[..*n].contains(&names[*n]));
    match repeated {
        Some(n) => Err(TransferError::SameName(OsStr::from_bytes(names[n]).into())),
        None => Ok(()),
    }
}

impl SourcePath {
    /// Whether a pattern leaves it out as a whole. Standard input is not a name.
    pub fn is_excluded(&self, exclude: &Patterns) -> bool {
        let name = self.name.as_deref().filter(|_| !self.standard_input);
        name.is_some_and(|name| exclude.is_match(name, self.is_directory))
    }

    pub fn new(path: &Path, name: Option<&str>) -> Result<SourcePath> {
        if path == Path::new("-") {
            let name = name.unwrap_or("stdin").as_bytes().to_vec();
            return Ok(SourcePath {
                path: path.into(),
                name: Some(name),
                standard_input: true,
                is_directory: false,
            });
        }
        let is_directory = std::fs::metadata(path).map_err(|e| unreadable(path, e))?.is_dir();
        let bytes = path.as_os_str().as_bytes();
        let contents = is_directory && (bytes.ends_with(b"/") || bytes.ends_with(b"/."));
        let own = match name {
            Some(name) => Some(name.as_bytes().to_vec()),
            None if contents || bytes == b"." => None,
            None => match path.file_name() {
                Some(name) => Some(name.as_bytes().to_vec()),
                // A path such as `..`: named by its target.
                None => {
                    let full = path.canonicalize().map_err(|e| unreadable(path, e))?;
                    full.file_name().map(|name| name.as_bytes().to_vec())
                }
            },
        };
        if let Some(name) = &own {
            RelativePath::new(name.clone())?;
            if name.contains(&b'/') {
                let name = PeerText::from(&*String::from_utf8_lossy(name));
                let reason = "it contains a slash; send it under another name";
                return Err(TransferError::NothingToSend(format!(
                    "the name \"{name}\" is refused: {reason}"
                )));
            }
        }
        Ok(SourcePath { path: path.to_owned(), name: own, standard_input: false, is_directory })
    }
}
