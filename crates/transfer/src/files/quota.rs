//! Limits the disk space of a client's directory.
//!
//! The quota counts disk blocks. A transfer reserves quota before it writes, and frees quota only after a file is really
//! gone, so disk usage never exceeds the quota. Once a file's size on disk is known, the excess is freed.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use sweetspot_units::Bytes;

use crate::lock::lock;

/// Content is rounded up to blocks, and every entry takes at least one.
const BLOCK_BYTES: u64 = 4096;
/// Directory space of one name: the longest entry of ext4, 264 bytes, in blocks that are half full after a split.
const NAME_BYTES: u64 = 512;
/// The unit of `st_blocks`, bytes.
pub(crate) const STAT_BLOCK_BYTES: u64 = 512;

/// The remaining quota of a directory, for one client.
#[derive(Debug)]
pub(crate) struct Quota {
    limit: Bytes,
    ledger: Arc<Ledger>,
}

/// A directory's disk usage, by all transfers into it.
#[derive(Debug)]
struct Ledger {
    used: AtomicU64,
    /// Held while an entry is replaced, so that its quota is freed only once.
    replacing: Mutex<()>,
}

impl Quota {
    pub fn limit(&self) -> Bytes {
        self.limit
    }

    /// The used part of the directory's quota, by all clients.
    pub fn used(&self) -> Bytes {
        Bytes::new(self.ledger.used.load(Ordering::Acquire))
    }

    /// Reserves `bytes`. Returns false, and reserves nothing, if there is not enough.
    pub fn take(&self, bytes: u64) -> bool {
        let more = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.limit.get());
        self.ledger.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    pub fn give_back(&self, bytes: u64) {
        let less = |used: u64| Some(used.saturating_sub(bytes));
        let _ = self.ledger.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }

    /// Corrects the reservation `reserved` to `needed`, once the size is known.
    pub fn settle(&self, reserved: u64, needed: u64) {
        self.give_back(reserved.saturating_sub(needed));
        // Some file systems use more than was written. That counts even above the limit.
        self.ledger.used.fetch_add(needed.saturating_sub(reserved), Ordering::AcqRel);
    }

    /// Runs `step`, which may replace the files that `old` finds. Returns their quota once they are gone.
    pub fn replacing<T>(
        &self,
        old: impl FnOnce() -> Option<File>,
        step: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let _one_at_a_time = lock(&self.ledger.replacing);
        let old = old();
        let before = old.as_ref().and_then(|old| old.metadata().ok());
        let done = step()?;
        let after = old.as_ref().and_then(|old| old.metadata().ok());
        if let (Some(before), Some(after)) = (before, after)
            && after.nlink() < before.nlink()
        {
            self.give_back(if after.nlink() == 0 { room_on_disk(&before) } else { room_of(0) });
        }
        Ok(done)
    }
}

/// The quota for a named file with this content length.
pub(crate) fn room_of(length: u64) -> u64 {
    blocks_of(length.max(1)).saturating_add(NAME_BYTES)
}

/// The quota for the content alone.
pub(crate) fn blocks_of(length: u64) -> u64 {
    length.div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES)
}

/// The quota of a file by its disk usage; holes take none.
pub(crate) fn room_on_disk(metadata: &Metadata) -> u64 {
    room_of(metadata.blocks().saturating_mul(STAT_BLOCK_BYTES))
}

/// The quotas of the directories into which transfers run.
#[derive(Debug, Default)]
pub(crate) struct QuotaTable(Mutex<HashMap<PathBuf, Arc<Mutex<Weak<Ledger>>>>>);

impl QuotaTable {
    /// The quota of `directory`. Its contents are measured when no other transfer into it is running.
    pub fn of(&self, directory: &Path, limit: Bytes) -> io::Result<Arc<Quota>> {
        let directory = directory.canonicalize()?;
        let entry = {
            let mut open = lock(&self.0);
            open.retain(|_, entry| Arc::strong_count(entry) > 1 || lock(entry).strong_count() > 0);
            Arc::clone(open.entry(directory.clone()).or_default())
        };
        // Other directories must not wait while this one is measured.
        let mut ledger = lock(&entry);
        if let Some(ledger) = ledger.upgrade() {
            return Ok(Arc::new(Quota { limit, ledger }));
        }
        let used = AtomicU64::new(held(&directory)?);
        let counted = Arc::new(Ledger { used, replacing: Mutex::default() });
        *ledger = Arc::downgrade(&counted);
        Ok(Arc::new(Quota { limit, ledger: counted }))
    }
}

/// The quota that everything in `directory` takes. Links are not followed, and a file with several names counts once.
fn held(directory: &Path) -> io::Result<u64> {
    let mut sum = 0u64;
    let mut linked = HashSet::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(next) = pending.pop() {
        let entries = match fs::read_dir(&next) {
            // Another process is deleting below the directory.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            let is_counted = metadata.is_file()
                && metadata.nlink() > 1
                && !linked.insert((metadata.dev(), metadata.ino()));
            sum = sum.saturating_add(if is_counted { room_of(0) } else { room_on_disk(&metadata) });
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

    fn quota(limit: u64, used: u64) -> Quota {
        let ledger = Ledger { used: used.into(), replacing: Mutex::default() };
        Quota { limit: Bytes::new(limit), ledger: Arc::new(ledger) }
    }

    #[test]
    fn reservations_never_exceed_the_quota() {
        let quota = quota(10_000, 4096);
        assert!(quota.take(4096));
        assert!(!quota.take(4096));
        quota.give_back(4096);
        assert!(quota.take(5904));
        assert!(!quota.take(1));
        assert!(!quota.take(u64::MAX));
        quota.settle(5904, 5000);
        assert!(quota.take(904) && !quota.take(1));
        quota.settle(904, 905);
        quota.give_back(1);
        assert!(!quota.take(1), "what is there counts, even above the limit");
    }

    #[test]
    fn directory_usage_is_counted_in_blocks_and_names() {
        let scratch = tempfile::tempdir().unwrap();
        let deep = scratch.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("empty"), b"").unwrap();
        fs::write(deep.join("file"), vec![1; 4097]).unwrap();
        // A second name for the same file takes one block, not two.
        fs::hard_link(deep.join("file"), deep.join("same")).unwrap();
        // Outside of the directory, and not followed.
        std::os::unix::fs::symlink("/usr", deep.join("link")).unwrap();
        // A hole takes nothing.
        File::create(deep.join("hole")).unwrap().set_len(1 << 30).unwrap();
        // Two directories, a link, an empty file, a hole and a second name of one block each, and two blocks; 7 names.
        let expected = 8 * BLOCK_BYTES + 7 * NAME_BYTES;
        assert_eq!(held(scratch.path()).unwrap(), expected);
    }

    #[test]
    fn transfers_into_one_directory_share_its_quota() {
        let scratch = tempfile::tempdir().unwrap();
        let table = QuotaTable::default();
        let of = |limit| table.of(scratch.path(), Bytes::new(limit)).unwrap();
        let (one, two) = (of(8192), of(8192));
        assert!(one.take(8192));
        assert!(!two.take(1));
        // Another limit and another name of the directory share the same usage.
        assert!(!of(8192 + 8191).take(8192));
        let around = scratch.path().join("../").join(scratch.path().file_name().unwrap());
        let same = table.of(&around, Bytes::new(8192 + 8192)).unwrap();
        assert!(same.take(8192) && !same.take(1));
    }

    #[test]
    fn a_replaced_file_releases_its_quota_with_its_last_name() {
        let scratch = tempfile::tempdir().unwrap();
        let (old, new) = (scratch.path().join("old"), scratch.path().join("new"));
        let content = vec![1; 100_000];
        let replace = |quota: &Quota| {
            fs::write(&new, b"").unwrap();
            quota.replacing(|| File::open(&old).ok(), || fs::rename(&new, &old)).unwrap();
        };
        fs::write(&old, &content).unwrap();
        fs::hard_link(&old, scratch.path().join("other")).unwrap();
        // 100,000 bytes are 25 blocks.
        let (quota, whole) = (quota(1 << 20, 1 << 20), 25 * BLOCK_BYTES + NAME_BYTES);
        replace(&quota);
        assert!(quota.take(BLOCK_BYTES + NAME_BYTES) && !quota.take(1), "it has another name");
        fs::write(&old, &content).unwrap();
        replace(&quota);
        assert!(quota.take(whole) && !quota.take(1));
        quota.replacing(|| File::open(&old).ok(), || Ok(())).unwrap();
        assert!(!quota.take(1), "nothing was replaced");
    }
}
