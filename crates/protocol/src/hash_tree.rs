//! BLAKE3's own tree over the pieces of a file.
//!
//! A piece is a subtree of the tree that BLAKE3 builds over the whole file. The hashes of a file's pieces therefore give
//! the file's ordinary BLAKE3 hash, and each piece can be verified on its own (BLAKE3 specification, section 2.1;
//! `blake3::hazmat`).

use blake3::hazmat::{self, HasherExt, Mode};

/// Bytes of a piece, except for a file's last: a power of two, as a subtree requires.
pub const PIECE_BYTES: u64 = 256 << 10;

/// The longest file, bytes: limited by the number of pieces that can be numbered.
pub const MAX_FILE_BYTES: u64 = PIECE_BYTES * u32::MAX as u64;

/// The hash of one piece: BLAKE3's chaining value of its subtree. If the file has only one piece, the file's hash.
pub type PieceHash = [u8; 32];

/// The number of pieces of a file of `size` bytes. An empty file has none.
///
/// ```
/// use sweetspot_protocol::hash_tree::{PIECE_BYTES, pieces};
/// assert_eq!([0, 1, PIECE_BYTES, PIECE_BYTES + 1].map(pieces), [0, 1, 1, 2]);
/// ```
pub fn pieces(size: u64) -> u64 {
    size.div_ceil(PIECE_BYTES)
}

/// The length of piece number `piece` of a file of `size` bytes; zero beyond its end.
pub fn piece_length(size: u64, piece: u32) -> u64 {
    size.saturating_sub(u64::from(piece) * PIECE_BYTES).min(PIECE_BYTES)
}

/// The hash of piece number `piece`. `only`: it is the whole file. `bytes` is not empty.
pub fn piece_hash(piece: u32, only: bool, bytes: &[u8]) -> PieceHash {
    if only {
        return *blake3::hash(bytes).as_bytes();
    }
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(u64::from(piece) * PIECE_BYTES);
    hasher.update(bytes);
    hasher.finalize_non_root()
}

/// The hash of a file from the hashes of all its pieces.
///
/// ```
/// use sweetspot_protocol::hash_tree::{PIECE_BYTES, piece_hash, root};
/// let content = vec![7; PIECE_BYTES as usize * 2 + 1];
/// let hashes: Vec<_> = content
///     .chunks(PIECE_BYTES as usize)
///     .enumerate()
///     .map(|(number, piece)| piece_hash(number as u32, false, piece))
///     .collect();
/// assert_eq!(root(&hashes), blake3::hash(&content));
/// ```
pub fn root(hashes: &[PieceHash]) -> blake3::Hash {
    match hashes {
        [] => blake3::hash(b""),
        [only] => blake3::Hash::from_bytes(*only),
        _ => {
            let (left, right) = halves(hashes);
            hazmat::merge_subtrees_root(&subtree(left), &subtree(right), Mode::Hash)
        }
    }
}

/// Builds the hash of a file from the hashes of its pieces, in order. It keeps one hash per level of the tree, so a file
/// of a petabyte needs a kilobyte.
///
/// ```
/// use sweetspot_protocol::hash_tree::{RootBuilder, piece_hash};
/// let mut root = RootBuilder::default();
/// root.push(piece_hash(0, true, b"abc"));
/// assert_eq!(root.finish(), blake3::hash(b"abc"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct RootBuilder {
    pieces: u64,
    /// Roots of complete subtrees, each larger than the next.
    subtrees: Vec<PieceHash>,
}

impl RootBuilder {
    /// Adds the hash of the next piece.
    pub fn push(&mut self, hash: PieceHash) {
        // One subtree remains for each one bit in the number of pieces. Merging is delayed until another piece shows that
        // none of them is the root.
        while self.subtrees.len() > self.pieces.count_ones() as usize {
            self.merge();
        }
        self.subtrees.push(hash);
        self.pieces += 1;
    }

    /// The hash of the file, after its last piece.
    pub fn finish(mut self) -> blake3::Hash {
        while self.subtrees.len() > 2 {
            self.merge();
        }
        match &self.subtrees[..] {
            [] => blake3::hash(b""),
            [only] => blake3::Hash::from_bytes(*only),
            [left, right, ..] => hazmat::merge_subtrees_root(left, right, Mode::Hash),
        }
    }

    fn merge(&mut self) {
        if let (Some(right), Some(left)) = (self.subtrees.pop(), self.subtrees.pop()) {
            self.subtrees.push(hazmat::merge_subtrees_non_root(&left, &right, Mode::Hash));
        }
    }
}

fn subtree(hashes: &[PieceHash]) -> PieceHash {
    match hashes {
        [only] => *only,
        _ => {
            let (left, right) = halves(hashes);
            hazmat::merge_subtrees_non_root(&subtree(left), &subtree(right), Mode::Hash)
        }
    }
}

/// The left half holds the largest power of two of pieces that leaves at least one piece for the right.
fn halves(hashes: &[PieceHash]) -> (&[PieceHash], &[PieceHash]) {
    hashes.split_at(hashes.len().next_power_of_two() / 2)
}

/// The number of pieces in the left half of `pieces`, which is at least two.
pub(crate) fn left_pieces(pieces: u32) -> u32 {
    1 << (pieces - 1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tree(content: &[u8]) -> blake3::Hash {
        let chunks: Vec<_> = content.chunks(PIECE_BYTES as usize).collect();
        let only = chunks.len() == 1;
        let hashes = chunks.iter().enumerate();
        root(&hashes.map(|(n, piece)| piece_hash(n as u32, only, piece)).collect::<Vec<_>>())
    }

    #[test]
    fn the_tree_root_is_the_file_hash_for_any_piece_count() {
        for pieces in 0..20 {
            for extra in [0, 1, 1024, 1025] {
                let length = pieces * PIECE_BYTES as usize + extra;
                let content: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
                assert_eq!(tree(&content), blake3::hash(&content), "{pieces} + {extra}");
            }
        }
    }

    #[test]
    fn pushing_hashes_one_by_one_gives_the_same_root() {
        let hashes: Vec<PieceHash> = (0..70).map(|n| [n; 32]).collect();
        for count in 0..=hashes.len() {
            let mut builder = RootBuilder::default();
            hashes[..count].iter().for_each(|hash| builder.push(*hash));
            // At most as many subtrees as 70 has bits, plus one that is not merged yet.
            assert!(builder.subtrees.len() <= 8);
            assert_eq!(builder.finish(), root(&hashes[..count]), "{count}");
        }
    }

    #[test]
    fn left_piece_counts_match_split_lists() {
        for pieces in 2..200 {
            assert_eq!(
                left_pieces(pieces) as usize,
                halves(&vec![[0; 32]; pieces as usize]).0.len()
            );
        }
        assert_eq!(left_pieces(u32::MAX), 1 << 31);
    }

    proptest! {
        #[test]
        fn piece_lengths_sum_to_the_file_size(size in 0u64..100 * PIECE_BYTES) {
            let sum: u64 = (0..pieces(size)).map(|n| piece_length(size, n as u32)).sum();
            prop_assert_eq!(sum, size);
            prop_assert_eq!(piece_length(size, pieces(size) as u32), 0);
        }
    }
}
