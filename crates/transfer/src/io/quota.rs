//! How much a client's directory may hold.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use sweetspot_units::Bytes;

use super::channel::lock;

/// What everything is rounded up to, so that names without content do not come free.
const BLOCK_BYTES: u64 = 4096;

/// What a directory may still hold, for all transfers into it together.
#[derive(Debug)]
pub(crate) struct Quota {
    limit: Bytes,
    used: AtomicU64,
}

impl Quota {
    /// The quota of a directory that holds `used` already.
    pub fn new(limit: Bytes, used: u64) -> Quota {
        Quota { limit, used: used.into() }
    }

    /// The limit.
    pub fn limit(&self) -> Bytes {
        self.limit
    }

    /// Takes room; false, and nothing taken, if there is not enough.
    pub fn take(&self, bytes: u64) -> bool {
        let more = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.limit.get());
        self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    /// Gives room back.
    pub fn give_back(&self, bytes: u64) {
        let less = |used: u64| Some(used.saturating_sub(bytes));
        let _ = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }
}

/// The room that something of this length takes.
pub(crate) fn room_of(length: u64) -> u64 {
    length.max(1).div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES)
}

/// The quotas of the directories into which transfers run.
#[derive(Debug, Default)]
pub(crate) struct QuotaTable(Mutex<HashMap<PathBuf, Weak<Quota>>>);

impl QuotaTable {
    /// The quota of `directory`. What it holds is counted when no other transfer into it runs.
    pub fn of(&self, directory: &Path, limit: Bytes) -> io::Result<Arc<Quota>> {
        let mut open = lock(&self.0);
        open.retain(|_, quota| quota.strong_count() > 0);
        if let Some(quota) = open.get(directory).and_then(Weak::upgrade)
            && quota.limit == limit
        {
            return Ok(quota);
        }
        let quota = Arc::new(Quota::new(limit, held(directory)?));
        open.insert(directory.to_owned(), Arc::downgrade(&quota));
        Ok(quota)
    }
}

/// The room that everything in `directory` takes. Links are not followed.
fn held(directory: &Path) -> io::Result<u64> {
    let mut sum = 0u64;
    let mut pending = vec![directory.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(&next)? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            // Holes take no room, names do.
            let blocks = metadata.blocks() * 512;
            let length = if metadata.is_file() { metadata.len().min(blocks) } else { 0 };
            sum = sum.saturating_add(room_of(length));
            if metadata.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_the_quota_has() {
        let quota = Quota::new(Bytes::new(10_000), 4096);
        assert!(quota.take(4096));
        assert!(!quota.take(4096));
        quota.give_back(4096);
        assert!(quota.take(5904));
        assert!(!quota.take(1));
        assert!(!quota.take(u64::MAX));
    }

    #[test]
    fn everything_in_a_directory_is_counted_in_blocks() {
        let scratch = tempfile::tempdir().unwrap();
        let deep = scratch.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("empty"), b"").unwrap();
        fs::write(deep.join("file"), vec![1; 4097]).unwrap();
        // Outside of it, and not followed.
        std::os::unix::fs::symlink("/usr", deep.join("link")).unwrap();
        // Two directories, a link and an empty file of one block each, and two blocks.
        assert_eq!(held(scratch.path()).unwrap(), 6 * BLOCK_BYTES);
    }

    #[test]
    fn transfers_into_one_directory_share_its_quota() {
        let scratch = tempfile::tempdir().unwrap();
        let table = QuotaTable::default();
        let of = |limit| table.of(scratch.path(), Bytes::new(limit)).unwrap();
        let (one, two) = (of(8192), of(8192));
        assert!(one.take(8192));
        assert!(!two.take(1));
        // Changed in the file meanwhile.
        assert!(of(16384).take(8192));
    }
}
