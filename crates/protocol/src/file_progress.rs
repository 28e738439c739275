use std::collections::BTreeMap;

use crate::hash_tree::{self, PIECE_BYTES, PieceHash};
use crate::order::ProtocolError;
use crate::record::FileEnd;

/// By how many pieces of a stream one may come early.
const MAX_OVERTAKING: u32 = 4096;

/// How much of one file has arrived, and whether it is what its sender meant.
///
/// Pieces may arrive in any order and on any connection, and again if the source changed while it was read. Those
/// that the receiver had before count with their own hashes until a piece of the sender replaces them.
///
/// ```
/// use sweetspot_protocol::FileProgress;
/// use sweetspot_protocol::hash_tree::piece_hash;
/// use sweetspot_protocol::record::FileEnd;
///
/// let mut file = FileProgress::new(Some(3));
/// file.handle_piece(0, 3, piece_hash(0, true, b"abc"))?;
/// let hash = *blake3::hash(b"abc").as_bytes();
/// file.handle_end(&FileEnd { entry: 0, size: 3, pieces_sent: 1, hash })?;
/// assert!(file.is_complete());
/// assert_eq!(file.hash(), blake3::hash(b"abc"));
/// # Ok::<(), sweetspot_protocol::ProtocolError>(())
/// ```
#[derive(Debug, Clone)]
pub struct FileProgress {
    /// The announced length; `None` for a stream.
    size: Option<u64>,
    hashes: PieceHashes,
    pieces_came: u32,
    end: Option<FileEnd>,
}

/// The hashes of a file's pieces, in blocks that are made when they are needed: a peer that announces a file of a
/// petabyte costs nothing until it sends it.
#[derive(Debug, Clone, Default)]
struct PieceHashes {
    blocks: BTreeMap<u32, Vec<PieceHash>>,
    /// One more than the largest number of a piece so far.
    length: u32,
}

/// Hashes in a block.
const BLOCK: usize = 1024;

impl PieceHashes {
    fn set(&mut self, piece: u32, hash: PieceHash) {
        let block = self.blocks.entry(piece / BLOCK as u32).or_default();
        let at = piece as usize % BLOCK;
        if block.len() <= at {
            block.resize(at + 1, [0; 32]);
        }
        block[at] = hash;
        self.length = self.length.max(piece.saturating_add(1));
    }

    fn root(&self) -> blake3::Hash {
        let mut all = vec![[0; 32]; self.length as usize];
        for (number, block) in &self.blocks {
            let at = *number as usize * BLOCK;
            all[at..at + block.len()].copy_from_slice(block);
        }
        hash_tree::root(&all)
    }
}

impl FileProgress {
    /// A file of `size` bytes, `None` if its length is not known, of which nothing has come.
    pub fn new(size: Option<u64>) -> FileProgress {
        FileProgress { size, hashes: PieceHashes::default(), pieces_came: 0, end: None }
    }

    /// The receiver had these hashes of pieces before.
    pub fn had(&mut self, first: u32, hashes: &[PieceHash]) {
        let pieces = hash_tree::pieces(self.size.unwrap_or(0));
        let numbers = (u64::from(first)..pieces).filter_map(|piece| u32::try_from(piece).ok());
        numbers.zip(hashes).for_each(|(piece, hash)| self.hashes.set(piece, *hash));
    }

    /// Piece number `piece` came, with `length` bytes.
    pub fn handle_piece(
        &mut self,
        piece: u32,
        length: u64,
        hash: PieceHash,
    ) -> Result<(), ProtocolError> {
        match self.size {
            Some(size) if hash_tree::piece_length(size, piece) != length || length == 0 => {
                return Err(ProtocolError::Piece { piece, what: "of a wrong length" });
            }
            None if length == 0 || length > PIECE_BYTES => {
                return Err(ProtocolError::Piece { piece, what: "of a wrong length" });
            }
            // A stream's pieces overtake each other by a few on their connections.
            None if piece > self.hashes.length + MAX_OVERTAKING => {
                return Err(ProtocolError::Piece { piece, what: "out of order" });
            }
            _ => self.hashes.set(piece, hash),
        }
        self.pieces_came = self
            .pieces_came
            .checked_add(1)
            .ok_or(ProtocolError::Piece { piece, what: "too often" })?;
        Ok(())
    }

    /// The sender has sent all that was lacking.
    pub fn handle_end(&mut self, end: &FileEnd) -> Result<(), ProtocolError> {
        match self.size {
            Some(size) if size != end.size => Err(ProtocolError::TooLittle(size)),
            _ if self.end.is_some() => {
                Err(ProtocolError::OutOfOrder { what: "the end of a file", when: "after its end" })
            }
            _ => {
                self.end = Some(*end);
                Ok(())
            }
        }
    }

    /// Whether all that was sent has come, and the end.
    pub fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| end.pieces_sent == self.pieces_came)
    }

    /// Whether the end has come.
    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// How many pieces came from the sender.
    pub fn pieces_came(&self) -> u32 {
        self.pieces_came
    }

    /// BLAKE3 of the whole content, from the hashes of its pieces. It costs as much as the file has pieces, and is of
    /// use once the file is complete.
    pub fn hash(&self) -> blake3::Hash {
        self.hashes.root()
    }

    /// BLAKE3 of the whole content as the sender computed it, once the end has come.
    pub fn hash_sent(&self) -> Option<blake3::Hash> {
        self.end.map(|end| blake3::Hash::from_bytes(end.hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash_tree::{PIECE_BYTES, piece_hash, piece_length, pieces};
    use proptest::prelude::*;

    fn end(size: u64, pieces_sent: u32, hash: blake3::Hash) -> FileEnd {
        FileEnd { entry: 0, size, pieces_sent, hash: *hash.as_bytes() }
    }

    #[test]
    fn a_piece_comes_at_its_length() {
        let mut file = FileProgress::new(Some(PIECE_BYTES + 5));
        assert!(file.handle_piece(0, 5, [0; 32]).is_err());
        assert!(file.handle_piece(2, 5, [0; 32]).is_err());
        assert!(file.handle_piece(1, 5, [0; 32]).is_ok());
    }

    #[test]
    fn a_piece_that_came_again_replaces_the_first() {
        let mut file = FileProgress::new(Some(3));
        for content in [b"abc", b"abd"] {
            file.handle_piece(0, 3, piece_hash(0, true, content)).unwrap();
        }
        file.handle_end(&end(3, 2, blake3::hash(b"abd"))).unwrap();
        assert!(file.is_complete());
        assert_eq!(Some(file.hash()), file.hash_sent());
    }

    #[test]
    fn a_streams_pieces_may_overtake_each_other() {
        let mut file = FileProgress::new(None);
        assert!(file.handle_piece(MAX_OVERTAKING + 1, PIECE_BYTES, [0; 32]).is_err());
        assert!(file.handle_piece(1, 7, [0; 32]).is_ok());
        assert!(file.handle_piece(0, PIECE_BYTES, [0; 32]).is_ok());
        assert!(!file.is_complete());
        file.handle_end(&end(PIECE_BYTES + 7, 2, blake3::hash(b""))).unwrap();
        assert!(file.is_complete());
    }

    proptest! {
        /// Whatever the receiver had and in whatever order pieces come, the file is complete once the
        /// last has come, and its hash is the content's.
        #[test]
        fn any_mixture_of_old_and_new_pieces_gives_the_contents_hash(
            size in 0u64..6 * PIECE_BYTES,
            had in any::<u8>(),
            order in Just([0u32, 1, 2, 3, 4, 5]).prop_shuffle(),
        ) {
            let content: Vec<u8> = (0..size).map(|i| (i % 253) as u8).collect();
            let only = pieces(size) == 1;
            let hash = |n: u32| {
                let from = u64::from(n) * PIECE_BYTES;
                let to = from + piece_length(size, n);
                piece_hash(n, only, &content[from as usize..to as usize])
            };
            let mut file = FileProgress::new(Some(size));
            let all = pieces(size) as u32;
            let lacking: Vec<u32> =
                order.into_iter().filter(|n| *n < all && had >> n & 1 == 0).collect();
            for n in (0..all).filter(|n| !lacking.contains(n)) {
                file.had(n, &[hash(n)]);
            }
            file.handle_end(&end(size, lacking.len() as u32, blake3::hash(&content))).unwrap();
            for n in &lacking {
                prop_assert!(!file.is_complete());
                file.handle_piece(*n, piece_length(size, *n), hash(*n)).unwrap();
            }
            prop_assert!(file.is_complete());
            prop_assert_eq!(Some(file.hash()), file.hash_sent());
        }
    }
}
