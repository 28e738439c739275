use std::ops::Range;

use blake3::hazmat::{self, Mode};

use crate::hash_tree::{self, PIECE_BYTES, PieceHash};
use crate::hole_runs::HoleRuns;
use crate::order::{ProtocolError, Result};
use crate::piece_hashes::PieceHashes;
use crate::record::FileEnd;
use crate::zero_tree::{ZeroTree, last_zeros};

/// The maximum number of missing pieces of a stream before a piece that arrives early.
const MAX_OVERTAKING: u32 = 4096;
/// Merging fewer hashes takes less than a millisecond, so `go_on` is not called.
const MERGED_AT_ONCE: u32 = 1024;

/// The arrived pieces of one file, and whether they have the sender's hash.
///
/// Pieces may arrive in any order and on any connection, and again if the source changed while it was read. Pieces that
/// the receiver already had count with their own hashes until a piece from the sender replaces them. Memory is used only
/// for pieces with content and for runs of holes, regardless of the size that the sender announced.
///
/// ```
/// use sweetspot_protocol::{FileProgress, ZeroTree};
/// use sweetspot_protocol::hash_tree::piece_hash;
/// use sweetspot_protocol::record::FileEnd;
///
/// let mut file = FileProgress::new(Some(3));
/// file.handle_piece(0, 3, piece_hash(0, true, b"abc"))?;
/// let hash = *blake3::hash(b"abc").as_bytes();
/// file.handle_end(&FileEnd { entry: 0, size: 3, pieces_sent: 1, hash })?;
/// assert!(file.is_complete() && file.is_whole());
/// assert_eq!(file.hash(&ZeroTree::default(), &|| true), Some(blake3::hash(b"abc")));
/// # Ok::<(), sweetspot_protocol::ProtocolError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct FileProgress {
    /// The announced length; `None` for a stream.
    size: Option<u64>,
    content: PieceHashes,
    holes: HoleRuns,
    /// One more than the highest piece number so far.
    length: u32,
    /// The number and length of a stream's short piece, which is its last.
    short: Option<(u32, u64)>,
    pieces_came: u32,
    end: Option<FileEnd>,
}

impl FileProgress {
    /// A file of `size` bytes (`None` if its length is unknown), without content.
    pub fn new(size: Option<u64>) -> FileProgress {
        FileProgress { size, ..FileProgress::default() }
    }

    /// Adds the hashes of pieces that the receiver already had.
    pub fn had(&mut self, first: u32, hashes: &[PieceHash]) {
        let pieces = hash_tree::pieces(self.size.unwrap_or(0));
        let numbers = (u64::from(first)..pieces).filter_map(|piece| u32::try_from(piece).ok());
        numbers.zip(hashes).for_each(|(piece, hash)| self.set(piece, *hash, false));
    }

    /// Adds a hole that the receiver already had, a whole piece.
    pub fn had_hole(&mut self, piece: u32) {
        if hash_tree::piece_length(self.size.unwrap_or(0), piece) > 0 {
            self.set_holes(piece..piece + 1);
        }
    }

    /// Records that piece number `piece` arrived, with `length` bytes.
    pub fn handle_piece(&mut self, piece: u32, length: u64, hash: PieceHash) -> Result<()> {
        let wrong = |what| Err(ProtocolError::Piece { piece, what });
        match self.size {
            Some(size) if hash_tree::piece_length(size, piece) != length || length == 0 => {
                return wrong("with a wrong length");
            }
            None if length == 0 || length > PIECE_BYTES => return wrong("with a wrong length"),
            // Pieces of a stream may overtake each other a little, because they use several connections.
            None if piece > self.length.saturating_add(MAX_OVERTAKING) => {
                return wrong("too far ahead of the pieces before it");
            }
            None if length < PIECE_BYTES && self.short.is_some_and(|(short, _)| short != piece) => {
                return wrong("with a wrong length: a stream has only one short piece");
            }
            None if length < PIECE_BYTES => self.short = Some((piece, length)),
            _ => {}
        }
        self.count(piece, 1)?;
        self.set(piece, hash, true);
        Ok(())
    }

    /// Records `pieces` pieces, from number `first` on, that arrived as holes.
    pub fn handle_holes(&mut self, first: u32, pieces: u32) -> Result<()> {
        let wrong = |what| Err(ProtocolError::Piece { piece: first, what });
        let Some(size) = self.size else { return wrong("as a hole, but a stream has no holes") };
        let end = u64::from(first) + u64::from(pieces);
        let Some(end) = u32::try_from(end).ok().filter(|_| end <= hash_tree::pieces(size)) else {
            return wrong("beyond the end of its file");
        };
        self.count(first, pieces)?;
        if pieces > 0 {
            self.set_holes(first..end);
        }
        Ok(())
    }

    fn count(&mut self, piece: u32, pieces: u32) -> Result<()> {
        let what = "after more pieces than a file can have";
        let sum = self.pieces_came.checked_add(pieces);
        self.pieces_came = sum.ok_or(ProtocolError::Piece { piece, what })?;
        Ok(())
    }

    fn set(&mut self, piece: u32, hash: PieceHash, received: bool) {
        self.holes.remove(piece);
        self.content.set(piece, hash, received);
        self.length = self.length.max(piece.saturating_add(1));
    }

    fn set_holes(&mut self, range: Range<u32>) {
        self.content.remove(range.clone());
        self.length = self.length.max(range.end);
        self.holes.insert(range);
    }

    /// Records that the sender has sent all missing pieces.
    pub fn handle_end(&mut self, end: &FileEnd) -> Result<()> {
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

    /// Whether the end and all pieces that were sent have arrived.
    pub fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| end.pieces_sent == self.pieces_came)
    }

    /// Whether the end has arrived.
    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Number of pieces that arrived from the sender.
    pub fn pieces_came(&self) -> u32 {
        self.pieces_came
    }

    /// Whether the content of this piece arrived from the sender.
    pub fn received(&self, piece: u32) -> bool {
        self.content.received(piece)
    }

    /// Number of pieces that are holes.
    pub fn hole_pieces(&self) -> u32 {
        self.holes.count()
    }

    /// Number of runs of holes.
    pub fn hole_runs(&self) -> usize {
        self.holes.runs()
    }

    /// Whether no piece is missing.
    pub fn is_whole(&self) -> bool {
        let Some(size) = self.size.or(self.end.map(|end| end.size)) else { return false };
        let known = u64::from(self.content.count()) + u64::from(self.holes.count());
        let short = self.short.is_none_or(|(piece, length)| {
            piece.checked_add(1) == Some(self.length)
                && hash_tree::piece_length(size, piece) == length
        });
        let pieces = hash_tree::pieces(size);
        known == pieces && u64::from(self.length) == pieces && short
    }

    /// BLAKE3 of the whole content, computed from the hashes of its pieces. `None` if a piece is missing, or if `go_on`
    /// returns false. Hashing zeros takes time; `zeros` caches these hashes.
    pub fn hash(&self, zeros: &ZeroTree, go_on: &dyn Fn() -> bool) -> Option<blake3::Hash> {
        if !self.is_whole() {
            return None;
        }
        match self.length {
            0 => Some(blake3::hash(b"")),
            1 => self.leaf(0, zeros, go_on).map(blake3::Hash::from_bytes),
            pieces => {
                let half = hash_tree::left_pieces(pieces);
                let left = self.subtree(0, half, zeros, go_on)?;
                let right = self.subtree(half, pieces - half, zeros, go_on)?;
                Some(hazmat::merge_subtrees_root(&left, &right, Mode::Hash))
            }
        }
    }

    fn subtree(
        &self,
        first: u32,
        pieces: u32,
        zeros: &ZeroTree,
        go_on: &dyn Fn() -> bool,
    ) -> Option<PieceHash> {
        if pieces == 1 {
            return self.leaf(first, zeros, go_on);
        }
        if pieces >= MERGED_AT_ONCE && !go_on() {
            return None;
        }
        if pieces.is_power_of_two()
            && self.holes.cover(first..first + pieces)
            && self.piece_length(first + pieces - 1) == PIECE_BYTES
        {
            return zeros.subtree(first, pieces.ilog2(), go_on);
        }
        let half = hash_tree::left_pieces(pieces);
        let left = self.subtree(first, half, zeros, go_on)?;
        let right = self.subtree(first + half, pieces - half, zeros, go_on)?;
        Some(hazmat::merge_subtrees_non_root(&left, &right, Mode::Hash))
    }

    fn leaf(&self, piece: u32, zeros: &ZeroTree, go_on: &dyn Fn() -> bool) -> Option<PieceHash> {
        if !self.holes.cover(piece..piece + 1) {
            return self.content.get(piece);
        }
        match self.piece_length(piece) {
            PIECE_BYTES if self.length > 1 => zeros.subtree(piece, 0, go_on),
            length => Some(last_zeros(piece, length)),
        }
    }

    /// The length of a hole's piece; streams have no holes.
    fn piece_length(&self, piece: u32) -> u64 {
        hash_tree::piece_length(self.size.unwrap_or(0), piece)
    }

    /// The sender's BLAKE3 of the whole content, after the end has arrived.
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

    fn hash(file: &FileProgress) -> Option<blake3::Hash> {
        file.hash(&ZeroTree::default(), &|| true)
    }

    #[test]
    fn a_piece_of_the_wrong_length_is_rejected() {
        let mut file = FileProgress::new(Some(PIECE_BYTES + 5));
        assert!(file.handle_piece(0, 5, [0; 32]).is_err());
        assert!(file.handle_piece(2, 5, [0; 32]).is_err());
        assert!(file.handle_piece(1, 5, [0; 32]).is_ok());
    }

    #[test]
    fn a_repeated_piece_replaces_the_first() {
        let mut file = FileProgress::new(Some(3));
        for content in [b"abc", b"abd"] {
            file.handle_piece(0, 3, piece_hash(0, true, content)).unwrap();
        }
        file.handle_end(&end(3, 2, blake3::hash(b"abd"))).unwrap();
        assert!(file.is_complete());
        assert_eq!(hash(&file), file.hash_sent());
    }

    #[test]
    fn stream_pieces_may_arrive_out_of_order_within_a_limit() {
        let mut file = FileProgress::new(None);
        assert!(file.handle_piece(MAX_OVERTAKING + 1, PIECE_BYTES, [0; 32]).is_err());
        assert!(file.handle_piece(1, 7, [0; 32]).is_ok());
        assert!(file.handle_piece(0, PIECE_BYTES, [0; 32]).is_ok());
        assert!(!file.is_complete());
        file.handle_end(&end(PIECE_BYTES + 7, 2, blake3::hash(b""))).unwrap();
        assert!(file.is_complete());
    }

    #[test]
    fn a_petabyte_file_uses_memory_only_for_received_pieces() {
        let size = hash_tree::MAX_FILE_BYTES;
        let mut file = FileProgress::new(Some(size));
        // First only the last piece, u32::MAX - 1; then every piece at once, which is one run.
        file.handle_holes(u32::MAX - 1, 1).unwrap();
        file.handle_end(&end(size, 1, blake3::hash(b""))).unwrap();
        assert!(file.is_complete() && !file.is_whole());
        assert_eq!(hash(&file), None);
        assert_eq!(file.hole_runs(), 1);
        let mut file = FileProgress::new(Some(size));
        file.handle_holes(0, u32::MAX).unwrap();
        assert!(file.is_whole());
        assert_eq!((file.hole_runs(), file.hole_pieces()), (1, u32::MAX));
        assert_eq!(file.hash(&ZeroTree::default(), &|| false), None, "it ends when told to");
        assert!(file.handle_holes(0, 1).is_err(), "more pieces than can be counted");
    }

    #[test]
    fn holes_beyond_the_known_length_are_rejected() {
        let mut file = FileProgress::new(Some(2 * PIECE_BYTES));
        assert!(file.handle_holes(1, 2).is_err());
        assert!(file.handle_holes(u32::MAX, u32::MAX).is_err());
        assert!(file.handle_holes(0, 2).is_ok());
        assert!(FileProgress::new(None).handle_holes(0, 1).is_err());
    }

    #[test]
    fn a_stream_with_a_gap_is_not_whole() {
        let mut file = FileProgress::new(None);
        for piece in [0, 2] {
            file.handle_piece(piece, PIECE_BYTES, [0; 32]).unwrap();
        }
        // The hash for a gap that counts as a piece hash of zeros: no content has this hash.
        let forged = hash_tree::root(&[[0; 32]; 3]);
        file.handle_end(&end(3 * PIECE_BYTES, 2, forged)).unwrap();
        assert!(file.is_complete() && !file.is_whole());
        assert_eq!(hash(&file), None);
    }

    #[test]
    fn only_the_last_stream_piece_may_be_short() {
        let mut file = FileProgress::new(None);
        file.handle_piece(0, 5, [0; 32]).unwrap();
        assert!(file.handle_piece(1, 5, [0; 32]).is_err());
        file.handle_piece(1, PIECE_BYTES, [0; 32]).unwrap();
        file.handle_end(&end(PIECE_BYTES + 5, 2, blake3::hash(b""))).unwrap();
        assert!(!file.is_whole());
    }

    /// A sender's or receiver's step: content that starts with a byte, or holes.
    #[derive(Debug, Clone)]
    enum Step {
        Content(u32, u8),
        Holes(u32, u32),
        Had(u32, u8),
        HadHole(u32),
    }

    fn step(pieces: u32) -> impl Strategy<Value = Step> {
        let piece = || 0..pieces;
        prop_oneof![
            (piece(), any::<u8>()).prop_map(|(piece, byte)| Step::Content(piece, byte)),
            (piece(), 1..pieces + 1).prop_map(|(piece, count)| Step::Holes(piece, count)),
            (piece(), any::<u8>()).prop_map(|(piece, byte)| Step::Had(piece, byte)),
            piece().prop_map(Step::HadHole),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Holes and content in any order, with repetitions, have the same hash as in the simple method: a list with one
        /// hash per piece, after the same steps.
        #[test]
        fn hole_runs_hash_like_the_zeros_they_represent(
            (size, steps) in (1u64..24 * PIECE_BYTES).prop_flat_map(|size| {
                let steps = proptest::collection::vec(step(pieces(size) as u32), 0..24);
                (Just(size), steps)
            }),
        ) {
            let all = pieces(size) as u32;
            let content = |n: u32, byte: u8| {
                let mut content = vec![0; piece_length(size, n) as usize];
                content[0] = byte;
                piece_hash(n, all == 1, &content)
            };
            let mut file = FileProgress::new(Some(size));
            let mut list = vec![None; all as usize];
            for step in steps {
                match step {
                    Step::Content(n, byte) => {
                        let hash = content(n, byte);
                        file.handle_piece(n, piece_length(size, n), hash).unwrap();
                        list[n as usize] = Some(hash);
                    }
                    Step::Holes(n, count) => {
                        let count = count.min(all - n);
                        file.handle_holes(n, count).unwrap();
                        (n..n + count).for_each(|n| list[n as usize] = Some(content(n, 0)));
                    }
                    Step::Had(n, byte) => {
                        file.had(n, &[content(n, byte)]);
                        list[n as usize] = Some(content(n, byte));
                    }
                    Step::HadHole(n) => {
                        file.had_hole(n);
                        list[n as usize] = Some(content(n, 0));
                    }
                }
            }
            let slow = list.into_iter().collect::<Option<Vec<_>>>().map(|list| hash_tree::root(&list));
            prop_assert_eq!(file.is_whole(), slow.is_some());
            prop_assert_eq!(self::hash(&file), slow);
        }
    }

    proptest! {
        /// With any pieces that the receiver already had, and in any order of arrival, the file is complete after the
        /// last piece. Its hash is that content's hash.
        #[test]
        fn any_mix_of_old_and_new_pieces_yields_the_content_hash(
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
            prop_assert!(file.is_complete() && file.is_whole());
            prop_assert_eq!(self::hash(&file), file.hash_sent());
        }
    }
}
