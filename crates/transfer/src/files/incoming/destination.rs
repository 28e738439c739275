//! From the user's target to the directory that a transfer writes into.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sweetspot_protocol::Offer;

use super::{Destination, Top};
use crate::files::provenance::View;
use crate::files::target::Target;
use crate::files::target::TargetDirectory;
use crate::{Result, TransferError};

impl Destination {
    /// Opens the directory for this offer. A new name becomes a directory if several files come.
    pub fn open(target: &Target, offer: &Offer, view: &View) -> Result<Destination> {
        let wrong = |path: &PathBuf| {
            let path = path.clone();
            |source| TransferError::Directory { path, source }
        };
        let open = |path: &PathBuf| TargetDirectory::open(path, view.clone()).map_err(wrong(path));
        match target {
            // Nothing can be taken back from there.
            Target::Output if !offer.one_file => Err(TransferError::OneOutput),
            Target::Output => Ok(Destination::Output),
            Target::Into(path) => {
                Ok(Destination::Directory { target: open(path)?, top: Top::Sent })
            }
            Target::At(path) if path.is_dir() => {
                Ok(Destination::Directory { target: open(path)?, top: Top::Sent })
            }
            // Nothing is created: its contents would all be new.
            Target::At(path)
                if offer.dry_run
                    && !path.parent().is_some_and(|p| p.is_dir() || p.as_os_str().is_empty()) =>
            {
                let source = std::io::ErrorKind::NotFound.into();
                Err(TransferError::Directory { path: path.clone(), source })
            }
            Target::At(path) if !offer.dry_run && makes_directory(path, offer) => {
                std::fs::create_dir(path).map_err(wrong(path))?;
                let target = open(path)?;
                target.note_made(None).map_err(wrong(path))?;
                Ok(Destination::Directory { target, top: Top::Sent })
            }
            Target::At(path) => {
                let parent = match path.parent() {
                    Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
                    _ => PathBuf::from("."),
                };
                let name = path.file_name().map(|name| name.as_bytes().to_vec());
                let top = match name {
                    None => Top::Sent,
                    Some(name) if makes_directory(path, offer) => Top::Below(name),
                    Some(name) => Top::Named(name),
                };
                Ok(Destination::Directory { target: open(&parent)?, top })
            }
        }
    }
}

/// Whether a new `path` becomes a directory.
fn makes_directory(path: &Path, offer: &Offer) -> bool {
    offer.many || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}
