use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use blake3::hazmat::{self, HasherExt, Mode};

use crate::hash_tree::{PIECE_BYTES, PieceHash};

/// Zeros are hashed in parts of this length, bytes: enough for the widest vector registers.
const PORTION: usize = 64 << 10;
static ZEROS: LazyLock<Vec<u8>> = LazyLock::new(|| vec![0; PORTION]);

/// Subtrees of up to 2^4 pieces, 4 MiB, are hashed directly; larger ones are merged.
const HASHED_LEVEL: u32 = 4;
/// Parts of a subtree are cached, too, if they have at least 2^10 pieces, 256 MiB.
const KEPT_LEVEL: u32 = 10;
/// Hashes in a generation: two generations take at most 11 MB.
const GENERATION: usize = 100_000;

/// BLAKE3's hashes of holes: subtrees of zeros, with a cache.
///
/// A subtree's hash depends on its position in the file, so each position is computed separately, once.
#[derive(Debug, Default)]
pub struct ZeroTree {
    known: Mutex<Generations>,
}

/// A subtree, given by its first piece and its level.
type Place = (u32, u32);

/// Hashes used since the last change of generations, and those used before. The older generation is dropped as a whole.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Place, PieceHash>,
    old: HashMap<Place, PieceHash>,
}

impl Generations {
    fn get(&mut self, place: Place) -> Option<PieceHash> {
        if let Some(hash) = self.young.get(&place) {
            return Some(*hash);
        }
        let hash = self.old.remove(&place)?;
        self.keep(place, hash);
        Some(hash)
    }

    fn keep(&mut self, place: Place, hash: PieceHash) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(place, hash);
    }
}

impl ZeroTree {
    /// The hash of 2^`level` whole pieces of zeros from number `first` on, which is a multiple of 2^`level`. `None` if
    /// `go_on` returns false; it is called every few milliseconds.
    pub fn subtree(&self, first: u32, level: u32, go_on: &dyn Fn() -> bool) -> Option<PieceHash> {
        if let Some(hash) = self.known().get((first, level)) {
            return Some(hash);
        }
        let hash = self.compute(first, level, go_on)?;
        self.known().keep((first, level), hash);
        Some(hash)
    }

    fn compute(&self, first: u32, level: u32, go_on: &dyn Fn() -> bool) -> Option<PieceHash> {
        if level <= HASHED_LEVEL {
            return go_on().then(|| hash_zeros(first, level));
        }
        let half = 1 << (level - 1);
        let part = |first| match level > KEPT_LEVEL {
            true => self.subtree(first, level - 1, go_on),
            false => self.compute(first, level - 1, go_on),
        };
        Some(hazmat::merge_subtrees_non_root(&part(first)?, &part(first + half)?, Mode::Hash))
    }

    fn known(&self) -> MutexGuard<'_, Generations> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash_zeros(first: u32, level: u32) -> PieceHash {
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(u64::from(first) * PIECE_BYTES);
    for _ in 0..(PIECE_BYTES << level) / PORTION as u64 {
        hasher.update(&ZEROS);
    }
    hasher.finalize_non_root()
}

/// The hash of `length` zeros, at most a piece, that are a file's last piece, with number `piece`.
pub(crate) fn last_zeros(piece: u32, length: u64) -> PieceHash {
    crate::hash_tree::piece_hash(piece, piece == 0, &vec![0; length as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash_tree::{piece_hash, root};

    #[test]
    fn zero_subtrees_hash_like_zero_pieces() {
        let zeros = vec![0; PIECE_BYTES as usize];
        let tree = ZeroTree::default();
        // The slow method: two halves of a file of 2^level pieces each; the root is merged from both.
        for level in [0, 1, 4, 5] {
            let count = 1 << level;
            let pieces: Vec<_> = (0..2 * count).map(|n| piece_hash(n, false, &zeros)).collect();
            let half = |first| tree.subtree(first, level, &|| true).unwrap();
            let merged = hazmat::merge_subtrees_root(&half(0), &half(count), Mode::Hash);
            assert_eq!(merged, root(&pieces), "level {level}");
            assert_eq!(tree.subtree(0, level, &|| false), Some(half(0)), "it is remembered");
        }
    }

    #[test]
    fn hashing_zeros_stops_when_cancelled() {
        // 2^26 pieces, 16 TiB, would take an hour.
        let asked = std::cell::Cell::new(0);
        let go_on = || asked.replace(asked.get() + 1) < 3;
        assert_eq!(ZeroTree::default().subtree(0, 26, &go_on), None);
        assert_eq!(asked.get(), 4);
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_entries_in_use() {
        let mut known = Generations::default();
        for first in 0..5 * GENERATION as u32 {
            known.keep((first, 0), [0; 32]);
            known.get((0, 0));
        }
        assert!(known.young.len() <= GENERATION && known.old.len() <= GENERATION);
        assert!(known.get((0, 0)).is_some(), "what is used stays");
    }
}
