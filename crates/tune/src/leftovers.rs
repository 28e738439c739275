//! The record of the limits in force. It outlives the tuner, so the next tuner can lift the remaining limits.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sweetspot_linux::file;
use sweetspot_units::Bytes;

use crate::lease::{has_lease_in, lift_all, window_in};

/// The beginning of the records' names; the tuner's process ID follows.
const PREFIX: &str = "limits-";

/// The lines of one tuner's [`Leases`](crate::Leases): in a file of their own, or in memory if no directory is available. The
/// tuner's processes hold a lock on the file while any of them lives.
#[derive(Debug)]
pub struct Record {
    file: File,
    path: Option<PathBuf>,
    held: BTreeSet<u64>,
}

impl Record {
    /// An empty record.
    pub fn create() -> io::Result<Record> {
        let in_directory = directory().and_then(|directory| Record::create_in(&directory).ok());
        match in_directory {
            Some(record) => Ok(record),
            None => Ok(Record { file: file::in_memory()?, path: None, held: BTreeSet::new() }),
        }
    }

    fn create_in(directory: &Path) -> io::Result<Record> {
        let name = format!("{PREFIX}{}", std::process::id());
        // Process IDs are reused, and another PID namespace may have the same one.
        let names = std::iter::once(name.clone()).chain((1..100).map(|n| format!("{name}-{n}")));
        for path in names.map(|name| directory.join(name)) {
            let mut options = File::options();
            match options.read(true).append(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) if file::try_lock(&file)? => {
                    return Ok(Record { file, path: Some(path), held: BTreeSet::new() });
                }
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// A handle on the same record, for another process.
    pub fn try_clone(&self) -> io::Result<Record> {
        let file = self.file.try_clone()?;
        Ok(Record { file, path: self.path.clone(), held: BTreeSet::new() })
    }

    /// Adds a line for a limit that is about to be set. If it cannot be written, the guardian still knows the limit.
    pub fn take(&mut self, cookie: u64, line: &str) {
        self.held.insert(cookie);
        let _ = self.file.write_all(line.as_bytes());
    }

    /// Adds a line for a connection with nothing left to undo.
    pub fn release(&mut self, cookie: u64, line: &str) {
        if !self.held.remove(&cookie) {
            return;
        }
        // Truncates the file whenever no limit is in force, so that it stays small.
        let _ = match self.held.is_empty() {
            true => self.file.set_len(0),
            false => self.file.write_all(line.as_bytes()),
        };
    }

    /// Removes the record, because nothing is left to undo.
    pub fn remove(&mut self) {
        let _ = self.file.set_len(0);
        if let Some(path) = self.path.take() {
            let _ = fs::remove_file(path);
        }
    }

    /// Lifts every limit in the record and removes it. Returns the number of connections.
    pub fn lift(mut self) -> usize {
        let lines = self.file.try_clone().and_then(|mut lines| {
            lines.seek(SeekFrom::Start(0))?;
            Ok(lines)
        });
        let lifted = lines.map_or(0, lift_all);
        self.remove();
        lifted
    }
}

/// Lifts the limits of this user's tuners that were killed together with their guardians. Returns the number of connections.
pub fn lift_leftovers() -> usize {
    let entries = directory().and_then(|directory| fs::read_dir(directory).ok());
    let left = entries.into_iter().flatten().flatten().filter(names_record).filter_map(|entry| {
        let path = entry.path();
        let mut options = File::options();
        let file =
            options.read(true).append(true).custom_flags(file::NO_FOLLOW).open(&path).ok()?;
        // If another process holds the lock, its tuner is still alive.
        let is_left = file::try_lock(&file).unwrap_or(false);
        is_left.then(|| Record { file, path: Some(path), held: BTreeSet::new() })
    });
    left.map(Record::lift).sum()
}

/// The limit that a tuner keeps on the window of the socket with this inode and cookie, as far as this user can tell: from the
/// user's own records; as root, also from the systemd unit's records and the BPF programs.
pub fn held_window(inode: u64, cookie: u64) -> Option<Bytes> {
    recorded_window(inode, cookie).or_else(|| sweetspot_kernel::held_window(cookie))
}

/// The limit by the records of tuners via pidfd alone.
fn recorded_window(inode: u64, cookie: u64) -> Option<Bytes> {
    records().find_map(|lines| window_in(lines, inode, cookie))
}

/// Whether a tuner via pidfd tunes the window of this socket, by the records. A tuner that lifted its limit for now keeps its line.
/// Without an `inode` it is not known.
pub fn is_recorded(inode: Option<u64>, cookie: u64) -> bool {
    records().any(|lines| has_lease_in(lines, inode, cookie))
}

/// The records that this user may read.
fn records() -> impl Iterator<Item = File> {
    let places = fs::metadata("/proc/self").ok().map(|own| own.uid());
    let places = places.into_iter().flat_map(|user| {
        let of_unit = (user == 0).then(|| PathBuf::from(UNIT_DIRECTORY));
        own_place(user).into_iter().chain(of_unit)
    });
    let entries = places.filter_map(|it| fs::read_dir(it).ok()).flatten().flatten();
    entries.filter(names_record).filter_map(|entry| {
        File::options().read(true).custom_flags(file::NO_FOLLOW).open(entry.path()).ok()
    })
}

/// Where packaging/sweetspot-tune.service keeps its records.
const UNIT_DIRECTORY: &str = "/run/sweetspot-tune";

fn names_record(entry: &fs::DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
}

/// The directory of this `user`'s records: the systemd unit's, root's, or the user session's.
fn own_place(user: u32) -> Option<PathBuf> {
    let of = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty());
    match (of("RUNTIME_DIRECTORY"), user) {
        (Some(directory), _) => Some(directory.into()),
        (None, 0) => Some("/run/sweetspot".into()),
        (None, _) => Some(PathBuf::from(of("XDG_RUNTIME_DIR")?).join("sweetspot")),
    }
}

/// The directory of this user's records, created if missing; `None` unless this user owns it and no other user can write to it.
/// A reboot deletes it and ends the connections.
fn directory() -> Option<PathBuf> {
    let user = fs::metadata("/proc/self").ok()?.uid();
    let directory = own_place(user)?;
    // It may be there already.
    let _ = DirBuilder::new().mode(0o700).create(&directory);
    let attributes = fs::metadata(&directory).ok()?;
    (attributes.is_dir() && attributes.uid() == user && attributes.mode() & 0o022 == 0)
        .then_some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releasing_everything_empties_a_record_and_removal_deletes_it() {
        let directory = tempfile::tempdir().unwrap();
        let mut record = Record::create_in(directory.path()).unwrap();
        let path = record.path.clone().unwrap();
        let content = || fs::read_to_string(&path).unwrap();
        record.take(7, "+ seven\n");
        record.take(8, "+ eight\n");
        record.release(7, "- 7\n");
        assert_eq!(content(), "+ seven\n+ eight\n- 7\n");
        record.release(8, "- 8\n");
        record.release(9, "- 9\n");
        assert_eq!(content(), "");
        record.remove();
        assert!(!path.exists());
    }

    #[test]
    fn a_record_in_use_is_locked_and_has_a_unique_name() {
        let directory = tempfile::tempdir().unwrap();
        let first = Record::create_in(directory.path()).unwrap();
        let second = Record::create_in(directory.path()).unwrap();
        assert_ne!(first.path, second.path);
        let again = File::open(first.path.as_ref().unwrap()).unwrap();
        assert!(!file::try_lock(&again).unwrap());
        drop(first);
        assert!(file::try_lock(&again).unwrap());
    }
}
