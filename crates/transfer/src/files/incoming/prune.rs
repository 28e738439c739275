//! Deletes everything that the sender does not have, after all files have been received.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::FileType;
use rustix::io::Errno;
use sweetspot_protocol::record::Record;
use sweetspot_protocol::{Printable, RelativePath, TEMP_FILE_PREFIX};

use super::kept::{ListedNames, shortened};
use super::{Answers, IncomingFiles};
use crate::Result;
use crate::error::system;
use crate::files::bounded_lines::BoundedLines;
use crate::files::source::Patterns;
use crate::files::target::{self, TargetDirectory};
use crate::limits::{MAX_FAILURE_LINES, MAX_REASON_BYTES};
use crate::lock::lock;

/// Deletion at a receiver, after all files have been received. Only its own user can ask for it; the protocol has no message
/// for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delete {
    /// Whether a source means its directory's contents, so that everything else in the target is deleted, too. Otherwise only
    /// the received directories are cleaned.
    pub contents: bool,
    /// Patterns of names that are never deleted: those that the sender excludes
    /// ([`Sources::exclude`](crate::Sources::exclude)).
    pub keep: Vec<String>,
}

/// Deleted names in one record. Escaped, each may take 2 KB, and a record holds at most 1 MiB.
const NAMES_PER_RECORD: usize = 256;

pub(crate) struct Deletion {
    /// Whether the target directory itself is cleaned.
    contents: bool,
    keep: Patterns,
}

#[derive(Default)]
pub(super) struct Pruning {
    listed: ListedNames,
    /// Paths at this end of the sender's pipes, sockets and devices, which are never deleted.
    skipped: ListedNames,
    /// Number of entries that the sender has but could not list.
    left_out: u32,
    /// Names that were deleted, or that a dry run would delete.
    deleted: BoundedLines,
    failures: Vec<String>,
}

/// A name to remove. A directory is visited twice: before and after its contents.
struct Removal {
    path: Vec<u8>,
    emptied: bool,
}

impl Deletion {
    pub fn new(wanted: &Delete) -> Result<Deletion> {
        Ok(Deletion { contents: wanted.contents, keep: Patterns::new(&wanted.keep)? })
    }
}

impl IncomingFiles {
    /// Notes the path at this end of a listed entry.
    pub(super) fn note_listed(&self, path: &RelativePath) {
        if self.deletion.is_some() {
            lock(&self.state).pruning.listed.push(path.as_bytes());
        }
    }

    /// Keeps the name of an entry that the sender has but does not send.
    pub(super) fn skip(&self, path: &RelativePath, sent_as: &RelativePath) {
        let mut state = lock(&self.state);
        state.skipped.add(sent_as.to_string());
        if self.deletion.is_some() {
            state.pruning.skipped.push(path.as_bytes());
        }
    }

    /// The names of the sender's pipes, sockets and devices.
    pub fn skipped_names(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.state).skipped).into_lines()
    }

    /// Notes that the list is complete, except for `left_out` entries that the sender could not list.
    pub fn list_ended(&self, left_out: u32) {
        lock(&self.state).pruning.left_out = left_out;
    }

    /// Sends the deleted names to the sender, and returns them. In a dry run, the names that would be deleted.
    pub fn send_deleted(&self, sender: &dyn Answers) -> Result<Vec<String>> {
        let (deleted, failures) = {
            let pruning = &mut lock(&self.state).pruning;
            (std::mem::take(&mut pruning.deleted), std::mem::take(&mut pruning.failures))
        };
        let text = |lines: &[String]| lines.iter().map(|line| line.as_str().into()).collect();
        let names = deleted.into_lines();
        for names in names.chunks(NAMES_PER_RECORD) {
            sender.send_record(&Record::Deleted { names: text(names), failures: Vec::new() })?;
        }
        for failures in failures.chunks(NAMES_PER_RECORD) {
            sender.send_record(&Record::Deleted { names: Vec::new(), failures: text(failures) })?;
        }
        Ok(names)
    }

    /// Deletes everything that the sender does not have, but only if all of its files were received.
    pub(super) fn prune(&self, target: &TargetDirectory) {
        let Some(deletion) = &self.deletion else { return };
        let (mut pruning, failed) = {
            let mut state = lock(&self.state);
            (std::mem::take(&mut state.pruning), state.failures.count > 0)
        };
        let obstacle = if failed {
            Some("some files failed")
        } else if pruning.left_out > 0 {
            Some("the sender left out some files (see its messages)")
        } else if pruning.listed.overflowed || pruning.skipped.overflowed {
            Some("there are more than four million names; copy in parts")
        } else {
            None
        };
        if let Some(why) = obstacle {
            self.note_undeleted(format!("nothing was deleted, because {why}"));
            return;
        }
        pruning.listed.sort();
        pruning.skipped.sort();
        // A directory that a dry run would create is still empty.
        let is_missing = self.is_top_chosen();
        let walk = Prune { files: self, target, deletion, pruning: &pruning };
        let mut extra = BoundedLines::default();
        walk.run(deletion.contents && !is_missing, &mut extra);
        lock(&self.state).pruning.deleted = extra;
    }

    fn note_undeleted(&self, line: String) {
        let mut state = lock(&self.state);
        let line = shortened(line);
        state.failures.add(line.clone());
        if state.pruning.failures.len() < MAX_FAILURE_LINES {
            state.pruning.failures.push(line);
        }
    }
}

struct Prune<'a> {
    files: &'a IncomingFiles,
    target: &'a TargetDirectory,
    deletion: &'a Deletion,
    pruning: &'a Pruning,
}

impl Prune<'_> {
    /// Visits the received directories. `top`: whether to clean the target directory itself, too.
    fn run(&self, top: bool, deleted: &mut BoundedLines) {
        let mut directories = vec![None];
        while let Some(directory) = directories.pop() {
            let at_top = directory.is_none();
            for path in self.names(directory.as_deref()) {
                if self.files.is_over() {
                    return;
                }
                if !self.pruning.listed.contains(&path) {
                    if top || !at_top {
                        self.remove(path, deleted);
                    }
                } else if self.is_directory(&path) {
                    directories.push(Some(path));
                }
            }
        }
    }

    /// The paths in a directory. Empty if it cannot be read, which is noted as a failure.
    fn names(&self, directory: Option<&[u8]>) -> Vec<Vec<u8>> {
        let named = self.target.names(directory).unwrap_or_else(|error| {
            // A dry run does not create directories.
            if !self.files.policy.dry_run
                || error.raw_os_error() != Some(Errno::NOENT.raw_os_error())
            {
                self.failed(directory.unwrap_or_default(), &system(&error));
            }
            Vec::new()
        });
        let path = |name: Vec<u8>| match directory {
            Some(directory) => [directory, &b"/"[..], &name].concat(),
            None => name,
        };
        named.into_iter().map(path).collect()
    }

    /// Removes `path`, for a directory after its contents. A directory is kept if anything in it is.
    fn remove(&self, path: Vec<u8>, deleted: &mut BoundedLines) {
        let mut removals = vec![Removal { path, emptied: false }];
        // Directories with contents to keep.
        let mut held = HashSet::new();
        while let Some(Removal { path, emptied }) = removals.pop() {
            if self.files.is_over() {
                return;
            }
            let (directory, name) = split(&path);
            let is_directory = match self.target.status_in(directory, name) {
                Ok(stat) => target::is(&stat, FileType::Directory),
                Err(error) => {
                    held.extend(directory.map(<[u8]>::to_vec));
                    self.failed(&path, &system(&error));
                    continue;
                }
            };
            if held.contains(&path) || self.stays(&path, is_directory) {
                held.extend(directory.map(<[u8]>::to_vec));
            } else if is_directory && !emptied {
                let within = self.names(Some(&path));
                removals.push(Removal { path, emptied: true });
                removals.extend(within.into_iter().map(|path| Removal { path, emptied: false }));
            } else {
                self.remove_one(&path, is_directory, deleted);
            }
        }
    }

    fn remove_one(&self, path: &[u8], is_directory: bool, deleted: &mut BoundedLines) {
        let (directory, name) = split(path);
        let removed = match self.files.policy.dry_run {
            true => Ok(()),
            false => self.target.remove(directory, name, is_directory),
        };
        match removed {
            Ok(()) => {
                let dry_run = self.files.policy.dry_run;
                lock(&self.files.state).counts.deleted += u64::from(!dry_run);
                deleted.add(shown(path, is_directory));
            }
            // The directory holds something to keep.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOTEMPTY) => {}
            Err(error) => self.failed(path, &system(&error)),
        }
    }

    /// Whether a name is kept although it was not received: the sender skipped it, it is excluded, or it is a partial file.
    fn stays(&self, path: &[u8], is_directory: bool) -> bool {
        let unfinished = split(path).1.starts_with(TEMP_FILE_PREFIX.as_bytes());
        if unfinished || self.pruning.skipped.contains(path) {
            return true;
        }
        self.deletion.keep.is_match(path, is_directory)
    }

    fn is_directory(&self, path: &[u8]) -> bool {
        let (directory, name) = split(path);
        let status = self.target.status_in(directory, name);
        status.is_ok_and(|stat| target::is(&stat, FileType::Directory))
    }

    fn failed(&self, path: &[u8], reason: &str) {
        self.files.note_undeleted(format!("{}: {reason}; it was not deleted", shown(path, false)));
    }
}

/// The directory of a path, and its last component.
fn split(path: &[u8]) -> (Option<&[u8]>, &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (Some(&path[..slash]), &path[slash + 1..]),
        None => (None, path),
    }
}

/// A path for the user, truncated to fit into a record.
fn shown(path: &[u8], is_directory: bool) -> String {
    let path = &path[path.len().saturating_sub(MAX_REASON_BYTES)..];
    let slash = if is_directory { "/" } else { "" };
    format!("{}{slash}", Printable(OsStr::from_bytes(path)))
}
