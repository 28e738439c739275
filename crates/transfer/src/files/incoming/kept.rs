//! A transfer's record of many entries, in little memory.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use super::file::FileId;
use crate::limits::{
    MAX_COMPARED_FILES, MAX_COMPARED_NAMES, MAX_MADE_DIRECTORIES, MAX_REASON_BYTES,
};

/// Numbers of entries, one bit each.
#[derive(Default)]
pub(super) struct NumberSet(Vec<u64>);

impl NumberSet {
    pub fn insert(&mut self, number: u32) {
        let (word, bit) = (number as usize / 64, number % 64);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << bit;
    }

    pub fn contains(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}

/// A directory that gets its mode and time once its contents are complete.
pub(super) struct LateDirectory {
    pub number: u32,
    pub mode: u32,
    pub modified: (i64, u32),
    pub owner: Option<(u32, u32)>,
    pub depth: usize,
    /// Whether this transfer created it.
    pub new: bool,
}

/// Directories that this transfer created, and that were therefore empty. Stored as hashes with a key unknown to the
/// peer. When there are too many, all are forgotten.
#[derive(Default)]
pub(super) struct MadeDirectories {
    hashes: HashSet<u64>,
    key: RandomState,
}

impl MadeDirectories {
    pub fn insert(&mut self, path: &[u8]) {
        if self.hashes.len() >= MAX_MADE_DIRECTORIES {
            self.hashes.clear();
        }
        self.hashes.insert(self.key.hash_one(path));
    }

    pub fn contains(&self, path: &[u8]) -> bool {
        self.hashes.contains(&self.key.hash_one(path))
    }

    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }
}

/// Names that the sender has, stored as hashes with a key unknown to the peer. If two names collide, both are kept on
/// disk.
#[derive(Default)]
pub(super) struct ListedNames {
    hashes: Vec<u64>,
    key: RandomState,
    /// Whether there were too many names.
    pub overflowed: bool,
}

impl ListedNames {
    pub fn push(&mut self, path: &[u8]) {
        if self.hashes.len() >= MAX_COMPARED_NAMES {
            self.overflowed = true;
            return;
        }
        self.hashes.push(self.key.hash_one(path));
    }

    /// Sorts the names, for [`ListedNames::contains`].
    pub fn sort(&mut self) {
        self.hashes.sort_unstable();
    }

    pub fn contains(&self, path: &[u8]) -> bool {
        self.hashes.binary_search(&self.key.hash_one(path)).is_ok()
    }
}

/// Files that have been compared, stored as hashes with a key unknown to the peer.
#[derive(Default)]
pub(super) struct ComparedFiles {
    hashes: HashSet<u64>,
    key: RandomState,
}

impl ComparedFiles {
    /// Adds a file. Returns false if it was compared before, or if the table is full.
    pub fn insert(&mut self, file: FileId) -> bool {
        self.hashes.len() < MAX_COMPARED_FILES && self.hashes.insert(self.key.hash_one(file))
    }
}

/// A failure's reason, truncated if it is too long to keep: much of it may be the peer's text.
pub(super) fn shortened(mut reason: String) -> String {
    if reason.len() > MAX_REASON_BYTES {
        let end = (0..=MAX_REASON_BYTES).rev().find(|at| reason.is_char_boundary(*at));
        reason.truncate(end.unwrap_or(0));
        reason.push('…');
    }
    reason.shrink_to_fit();
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_set_contains_exactly_its_insertions() {
        let mut set = NumberSet::default();
        [3, 64, 1000].into_iter().for_each(|number| set.insert(number));
        let held: Vec<u32> = (0..2000).filter(|number| set.contains(*number)).collect();
        assert_eq!(held, [3, 64, 1000]);
    }

    #[test]
    fn the_record_of_created_directories_is_bounded() {
        let mut made = MadeDirectories::default();
        for n in 0..3 * MAX_MADE_DIRECTORIES {
            made.insert(&n.to_le_bytes());
            assert!(made.contains(&n.to_le_bytes()));
        }
        assert!(made.hashes.len() <= MAX_MADE_DIRECTORIES);
    }

    #[test]
    fn listed_names_report_overflow_and_keep_earlier_names() {
        let mut listed = ListedNames::default();
        (0..MAX_COMPARED_NAMES).for_each(|n| listed.push(&n.to_le_bytes()));
        assert!(!listed.overflowed);
        listed.push(b"one more");
        assert!(listed.overflowed);
        listed.sort();
        assert!(
            (0..MAX_COMPARED_NAMES).step_by(1 << 12).all(|n| listed.contains(&n.to_le_bytes()))
        );
    }

    #[test]
    fn reasons_are_truncated_between_characters() {
        assert_eq!(shortened("short".into()), "short");
        let cut = shortened("ä".repeat(MAX_REASON_BYTES));
        assert_eq!(cut.chars().filter(|c| *c == 'ä').count(), MAX_REASON_BYTES / 2);
    }
}
