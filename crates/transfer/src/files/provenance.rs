//! A record of the directories and files that this process's transfers made.
//!
//! A later transfer may create dotfiles in a directory that an earlier one made, and a client that may not read learns
//! only about files that it brought itself.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};

use rustix::fs::{AtFlags, Stat, StatxFlags};
use rustix::io::Errno;

use crate::limits::{MAX_BROUGHT_FILES, MAX_MADE_DIRECTORIES};
use crate::lock::lock;

/// The entries that this process's transfers created. Beyond the limits, the oldest entries are dropped and then count as
/// foreign.
pub(crate) struct Provenance {
    directories: Mutex<Recent<DirectoryId>>,
    files: Mutex<Recent<FileDigest>>,
}

/// A directory by device, inode and birth time, because a file system may reuse the inode for another directory.
#[derive(Clone, PartialEq, Eq, Hash)]
struct DirectoryId {
    device: (u32, u32),
    inode: u64,
    born: (i64, u32),
}

/// The hash of a client's name and of a file's inode, type, length and time.
type FileDigest = [u8; 16];

/// A transfer's view of a directory: its client, and the files that the peer may learn about.
#[derive(Clone, Default)]
pub(crate) struct View {
    /// The client, if several have rights of their own. Each client has its own partial files.
    pub client: Option<String>,
    /// Whether the peer may learn only about files that it sent itself.
    pub own_only: bool,
    /// The entries that this process's transfers created.
    pub provenance: Arc<Provenance>,
}

impl Default for Provenance {
    fn default() -> Provenance {
        Provenance {
            directories: Mutex::new(Recent::new(MAX_MADE_DIRECTORIES)),
            files: Mutex::new(Recent::new(MAX_BROUGHT_FILES)),
        }
    }
}

impl Provenance {
    /// Notes that a transfer created this directory.
    pub fn note_directory(&self, directory: impl AsFd) -> io::Result<()> {
        let id = DirectoryId::of(directory)?;
        lock(&self.directories).insert(id);
        Ok(())
    }

    /// Whether a transfer of this process created this directory.
    pub fn made(&self, directory: impl AsFd) -> io::Result<bool> {
        let id = DirectoryId::of(directory)?;
        Ok(lock(&self.directories).contains(&id))
    }
}

impl View {
    /// Notes that this client sent the file or link with this status.
    pub fn note_brought(&self, stat: &Stat) {
        if self.own_only {
            lock(&self.provenance.files).insert(self.file_id(stat));
        }
    }

    /// Whether the peer may learn about the file with this status.
    pub fn may_tell(&self, stat: &Stat) -> bool {
        !self.own_only || lock(&self.provenance.files).contains(&self.file_id(stat))
    }

    fn file_id(&self, stat: &Stat) -> FileDigest {
        let mut hasher = blake3::Hasher::new();
        for number in [stat.st_dev, stat.st_ino, stat.st_mode.into(), stat.st_size as u64] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(&stat.st_mtime.to_le_bytes());
        hasher.update(&stat.st_mtime_nsec.to_le_bytes());
        hasher.update(self.client.as_deref().unwrap_or_default().as_bytes());
        let mut id = [0; 16];
        id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        id
    }
}

impl DirectoryId {
    fn of(directory: impl AsFd) -> io::Result<DirectoryId> {
        let (directory, wanted) = (directory.as_fd(), StatxFlags::INO | StatxFlags::BTIME);
        let found = match rustix::fs::statx(directory, "", AtFlags::EMPTY_PATH, wanted) {
            // A sandbox may forbid statx(2), the only call that returns the birth time.
            Err(Errno::NOSYS | Errno::PERM) => {
                let stat = rustix::fs::fstat(directory)?;
                let (major, minor) =
                    (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
                return Ok(DirectoryId {
                    device: (major, minor),
                    inode: stat.st_ino,
                    born: (0, 0),
                });
            }
            found => found?,
        };
        Ok(DirectoryId {
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            born: (found.stx_btime.tv_sec, found.stx_btime.tv_nsec),
        })
    }
}

/// A set that keeps only its newest `limit` entries.
struct Recent<K> {
    limit: usize,
    known: HashSet<K>,
    order: VecDeque<K>,
}

impl<K: Clone + Eq + Hash> Recent<K> {
    fn new(limit: usize) -> Recent<K> {
        Recent { limit, known: HashSet::new(), order: VecDeque::new() }
    }

    fn insert(&mut self, key: K) {
        if !self.known.insert(key.clone()) {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    fn contains(&self, key: &K) -> bool {
        self.known.contains(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_new_entry_evicts_the_oldest() {
        let mut recent = Recent::new(2);
        for key in [1, 2, 1, 3] {
            recent.insert(key);
        }
        assert_eq!([1, 2, 3].map(|key| recent.contains(&key)), [false, true, true]);
    }

    #[test]
    fn a_client_sees_its_files_until_they_change() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stat = || rustix::fs::fstat(file.as_file()).unwrap();
        let provenance = Arc::new(Provenance::default());
        let view = |client: &str| View {
            client: Some(client.into()),
            own_only: true,
            provenance: Arc::clone(&provenance),
        };
        let (alice, bob) = (view("alice"), view("bob"));
        assert!(!alice.may_tell(&stat()));
        alice.note_brought(&stat());
        assert!(alice.may_tell(&stat()) && !bob.may_tell(&stat()));
        std::fs::write(file.path(), "another length").unwrap();
        assert!(!alice.may_tell(&stat()));
        assert!(View::default().may_tell(&stat()), "a view without limits shows everything");
    }

    #[test]
    fn only_directories_created_by_a_transfer_are_known() {
        let (made, found) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let open = |dir: &tempfile::TempDir| File::open(dir.path()).unwrap();
        let provenance = Provenance::default();
        provenance.note_directory(open(&made)).unwrap();
        assert!(provenance.made(open(&made)).unwrap());
        assert!(!provenance.made(open(&found)).unwrap());
    }
}
