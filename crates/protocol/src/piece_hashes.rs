use std::collections::BTreeMap;
use std::ops::Range;

use crate::hash_tree::PieceHash;

const BLOCK: u32 = 64;

/// Hashes of pieces with content, in blocks. Memory is used only for known pieces.
#[derive(Debug, Clone, Default)]
pub(crate) struct PieceHashes {
    blocks: BTreeMap<u32, Block>,
    count: u32,
}

/// One bit for each known piece, and one for each piece that came from the sender; the hashes of the known pieces, in
/// order.
#[derive(Debug, Clone, Default)]
struct Block {
    known: u64,
    received: u64,
    hashes: Vec<PieceHash>,
}

impl Block {
    /// The index in `hashes` of the piece at `bit`.
    fn place(&self, bit: u32) -> usize {
        (self.known & ((1 << bit) - 1)).count_ones() as usize
    }

    fn keep_only(&mut self, kept: u64) {
        let known = self.known;
        let mut bits = (0..BLOCK).filter(|bit| known >> bit & 1 == 1);
        self.hashes.retain(|_| bits.next().is_some_and(|bit| kept >> bit & 1 == 1));
        self.known &= kept;
        self.received &= kept;
    }
}

impl PieceHashes {
    /// Sets the hash of a piece, and whether the piece came from the sender.
    pub fn set(&mut self, piece: u32, hash: PieceHash, received: bool) {
        let block = self.blocks.entry(piece / BLOCK).or_default();
        let bit = piece % BLOCK;
        let place = block.place(bit);
        if block.known >> bit & 1 == 1 {
            block.hashes[place] = hash;
        } else {
            block.hashes.insert(place, hash);
            block.known |= 1 << bit;
            self.count += 1;
        }
        block.received |= u64::from(received) << bit;
    }

    pub fn get(&self, piece: u32) -> Option<PieceHash> {
        let (block, bit) = (self.blocks.get(&(piece / BLOCK))?, piece % BLOCK);
        (block.known >> bit & 1 == 1).then(|| block.hashes[block.place(bit)])
    }

    /// Whether the piece came from the sender.
    pub fn received(&self, piece: u32) -> bool {
        self.blocks
            .get(&(piece / BLOCK))
            .is_some_and(|block| block.received >> (piece % BLOCK) & 1 == 1)
    }

    /// Removes the pieces in `range`, which is not empty. The time depends only on the number of stored pieces.
    pub fn remove(&mut self, range: Range<u32>) {
        let (first, last) = (range.start / BLOCK, (range.end - 1) / BLOCK);
        let touched: Vec<u32> =
            self.blocks.range(first..=last).map(|(number, _)| *number).collect();
        for number in touched {
            let from = range.start.saturating_sub(number * BLOCK);
            let to = (range.end - number * BLOCK).min(BLOCK);
            let removed = (u64::MAX << from) & (u64::MAX >> (BLOCK - to));
            let Some(block) = self.blocks.get_mut(&number) else { continue };
            self.count -= (block.known & removed).count_ones();
            block.keep_only(!removed);
            if block.known == 0 {
                self.blocks.remove(&number);
            }
        }
    }

    /// The number of known pieces.
    pub fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Behaves like an ordinary map after the same steps.
        #[test]
        fn piece_hashes_match_a_map(
            steps in proptest::collection::vec((0u32..300, 0u32..80, any::<bool>()), 0..60),
        ) {
            let (mut hashes, mut map) = (PieceHashes::default(), BTreeMap::new());
            for (at, (piece, length, sets)) in steps.into_iter().enumerate() {
                if sets {
                    hashes.set(piece, [at as u8; 32], length % 2 == 0);
                    let received = map.get(&piece).is_some_and(|(_, received)| *received);
                    map.insert(piece, ([at as u8; 32], received || length % 2 == 0));
                } else if length > 0 {
                    hashes.remove(piece..piece + length);
                    map.retain(|known, _| !(piece..piece + length).contains(known));
                }
            }
            prop_assert_eq!(hashes.count() as usize, map.len());
            for piece in 0..400 {
                prop_assert_eq!(hashes.get(piece), map.get(&piece).map(|(hash, _)| *hash));
                prop_assert_eq!(hashes.received(piece), map.get(&piece).is_some_and(|(_, received)| *received));
            }
        }
    }
}
