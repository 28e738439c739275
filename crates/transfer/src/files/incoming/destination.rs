//! From the user's target to the directory that a transfer writes into.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use sweetspot_protocol::Offer;

use super::{Destination, Top};
use crate::files::provenance::View;
use crate::files::target::Target;
use crate::files::target::TargetDirectory;
use crate::{Result, TransferError};

impl Destination {
    /// Opens the directory for this offer, by rsync's rule: the same command means the same place each time. Only a single file
    /// takes the name of a target that is not a directory; for anything else the target is the directory, made if missing.
    pub fn open(target: &Target, offer: &Offer, view: &View) -> Result<Destination> {
        let path = match target {
            // Nothing can be taken back from there.
            Target::Output if !offer.one_file => return Err(TransferError::OneOutput),
            Target::Output => return Ok(Destination::Output),
            Target::Into(path) => return into(path, view),
            Target::At(path) => path,
        };
        if path.is_dir() {
            return into(path, view);
        }
        let (parent, name) = split(path);
        let parent_metadata = std::fs::metadata(&parent);
        if parent_metadata.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Err(TransferError::NoParent(path.clone(), parent));
        }
        let takes_name = offer.one_file && !path.as_os_str().as_bytes().ends_with(b"/");
        let top = match name {
            // The root, or `..` of something that is not there.
            None => return into(path, view),
            Some(name) if takes_name => Top::Named(name),
            Some(name) if parent.join(OsStr::from_bytes(&name)).symlink_metadata().is_ok() => {
                let reason = if offer.one_file { ENDS_WITH_SLASH } else { NOT_A_DIRECTORY };
                return Err(TransferError::Target { path: path.clone(), reason });
            }
            // Nothing is made: its contents would all be new.
            Some(name) if offer.dry_run => Top::Below(name),
            Some(_) => {
                let mode = offer.contents_of.as_ref().map_or(0o777, |status| status.mode | 0o700);
                DirBuilder::new().mode(mode & 0o777).create(path).map_err(unusable(path))?;
                let target = directory(path, view)?;
                target.note_made(None).map_err(unusable(path))?;
                return Ok(Destination::Directory { target, top: Top::Sent });
            }
        };
        Ok(Destination::Directory { target: directory(&parent, view)?, top })
    }
}

const ENDS_WITH_SLASH: &str = "it exists and is not a directory, although the slash at its end asks for one; it was left \
                               unchanged; leave out the slash, or name another target";
const NOT_A_DIRECTORY: &str = "the target exists and is not a directory, which more than a single file needs; it was left \
                               unchanged; remove it, or name another target";

/// Everything goes into the directory at `path`, under the sender's names.
fn into(path: &Path, view: &View) -> Result<Destination> {
    Ok(Destination::Directory { target: directory(path, view)?, top: Top::Sent })
}

fn directory(path: &Path, view: &View) -> Result<TargetDirectory> {
    TargetDirectory::open(path, view.clone()).map_err(unusable(path))
}

fn unusable(path: &Path) -> impl FnOnce(io::Error) -> TransferError {
    let path = path.to_owned();
    |source| TransferError::Directory { path, source }
}

/// The directory that holds `path`, and the name in it; a slash at the end of a path to nothing does not count.
fn split(path: &Path) -> (PathBuf, Option<Vec<u8>>) {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    (parent, path.file_name().map(|name| name.as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sweetspot_protocol::RelativePath;

    use super::*;

    /// Where an entry `name` of this offer goes below `scratch`, and what is there afterwards.
    fn place(scratch: &Path, target: &str, one_file: bool, many: bool) -> Result<String, String> {
        let offer = Offer { one_file, many, ..Offer::default() };
        let target = Target::At(format!("{}/{target}", scratch.display()).into());
        let opened = Destination::open(&target, &offer, &View::default());
        let Destination::Directory { target, top } = opened.map_err(|error| error.to_string())?
        else {
            return Err("not a directory".into());
        };
        let path = top.place(&RelativePath::new("name").unwrap()).unwrap();
        let shown = target.shown(&path.to_string());
        Ok(shown.strip_prefix(scratch.to_str().unwrap()).unwrap()[1..].to_owned())
    }

    /// The table of rsync: what the target is, and where the thing arrives. The second run means the same place as the first.
    #[test]
    fn a_second_run_resolves_a_target_to_the_same_place() {
        let (directory, file, contents) = ((false, false), (true, false), (false, true));
        for (target, (one_file, many), expected) in [
            ("new", directory, "new/name"),
            ("new/", directory, "new/name"),
            ("new", contents, "new/name"),
            ("new", file, "new"),
            ("new/", file, "new/name"),
            ("there", directory, "there/name"),
            ("there", contents, "there/name"),
            ("there", file, "there/name"),
        ] {
            let scratch = tempfile::tempdir().unwrap();
            fs::create_dir(scratch.path().join("there")).unwrap();
            for run in ["first", "second"] {
                let placed = place(scratch.path(), target, one_file, many);
                assert_eq!(placed.as_deref(), Ok(expected), "{run} run: {target}");
                if placed.as_deref() == Ok("new") {
                    fs::write(scratch.path().join("new"), "arrived").unwrap();
                }
            }
        }
    }

    #[test]
    fn an_existing_file_is_rejected_as_a_target_directory() {
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join("file"), "x").unwrap();
        for (target, one_file, many, why) in [
            ("file", false, false, "more than a single file needs"),
            ("file", false, true, "more than a single file needs"),
            ("file/", true, false, "the slash at its end"),
        ] {
            let refused = place(scratch.path(), target, one_file, many).unwrap_err();
            assert!(refused.contains("exists and is not a directory"), "{refused}");
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn a_target_with_a_missing_parent_is_rejected() {
        let scratch = tempfile::tempdir().unwrap();
        for one_file in [true, false] {
            let refused = place(scratch.path(), "no/such/new", one_file, false).unwrap_err();
            assert!(refused.ends_with("/no/such does not exist; create it first"), "{refused}");
        }
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_dry_run_creates_no_directory() {
        let scratch = tempfile::tempdir().unwrap();
        let offer = Offer { dry_run: true, ..Offer::default() };
        let target = Target::At(scratch.path().join("new"));
        let opened = Destination::open(&target, &offer, &View::default()).unwrap();
        let below = Top::Below(b"new".to_vec());
        assert!(matches!(opened, Destination::Directory { top, .. } if top == below));
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }
}
