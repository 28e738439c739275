//! Frames: one byte for the kind, four bytes for the length (big-endian), then that many bytes.
//!
//! A piece of a file (kind 0) begins with the entry's number, the piece's number (4 bytes each) and the piece's hash
//! (32 bytes); its content is passed on as it arrives. A packed piece (kind 3) also has the length of its content (4
//! bytes). Its content follows as one zstd frame, which is shorter. Messages (kind 1) and records (kind 2) are
//! collected first. All kinds have a maximum length, so that a hostile peer cannot cause unbounded allocation.

use thiserror::Error;

use crate::hash_tree::{PIECE_BYTES, PieceHash};

/// The longest message that is accepted, bytes.
pub const MAX_MESSAGE_BYTES: u32 = 16 << 10;
/// The longest record that is accepted, bytes.
pub const MAX_RECORD_BYTES: u32 = 1 << 20;
/// The length of a frame's header, bytes.
pub const FRAME_HEADER_BYTES: usize = 5;
/// The length of a piece's own header after the frame's, bytes.
pub const PIECE_HEADER_BYTES: usize = 40;

/// The length of a packed piece's own header after the frame's, bytes.
pub const PACKED_HEADER_BYTES: usize = PIECE_HEADER_BYTES + 4;

const PIECE: u8 = 0;
const MESSAGE: u8 = 1;
const RECORD: u8 = 2;
const PACKED: u8 = 3;
const MAX_PIECE_FRAME_BYTES: u32 = PIECE_BYTES as u32 + PIECE_HEADER_BYTES as u32;

/// Why a frame is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The kind is unknown.
    #[error("{}", unknown_kind(*.0))]
    Kind(u8),
    /// The length exceeds the maximum of its kind.
    #[error("a frame of {length} bytes, above the limit of {limit}")]
    TooLong {
        /// The length in the header, bytes.
        length: u32,
        /// The maximum of this kind, bytes.
        limit: u32,
    },
    /// A packed piece is not shorter than its content, or the content is longer than a piece.
    #[error("a packed piece of {packed} bytes for {length} bytes of content")]
    Packed {
        /// The bytes that follow.
        packed: u32,
        /// The announced length of the content, bytes.
        length: u32,
    },
    /// The frame is empty. It carries nothing and could be sent forever.
    #[error("an empty frame")]
    Empty,
}

/// If a frame begins with a letter, the peer is another kind of server: 72 is the H of HTTP.
fn unknown_kind(kind: u8) -> String {
    if kind.is_ascii_graphic() {
        format!("text that begins with \"{}\": another server listens there", char::from(kind))
    } else {
        format!("a frame of unknown kind {kind}")
    }
}

/// The header of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceHeader {
    /// The number of the file's entry.
    pub entry: u32,
    /// The number of the piece in its file.
    pub piece: u32,
    /// The hash of its content.
    pub hash: PieceHash,
    /// Bytes of content, at least one. They follow unpacked, unless the piece is packed.
    pub length: u32,
}

/// A part of the stream, extracted from its frames.
#[derive(Debug, PartialEq, Eq)]
pub enum FramePart<'a> {
    /// A piece begins; with the number of bytes that follow: fewer than its content has if it is packed.
    Piece(PieceHeader, u32),
    /// The next bytes of the current piece.
    Content(&'a [u8]),
    /// The body of a whole message.
    Message(Vec<u8>),
    /// The body of a whole record.
    Record(Vec<u8>),
}

impl PieceHeader {
    /// The frame's header and the piece's, with `length` bytes of content to follow.
    pub fn to_bytes(&self) -> [u8; FRAME_HEADER_BYTES + PIECE_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES + PIECE_HEADER_BYTES];
        bytes[..5].copy_from_slice(&header(PIECE, self.length + PIECE_HEADER_BYTES as u32));
        bytes[5..9].copy_from_slice(&self.entry.to_be_bytes());
        bytes[9..13].copy_from_slice(&self.piece.to_be_bytes());
        bytes[13..].copy_from_slice(&self.hash);
        bytes
    }

    /// The headers of a packed piece, with `packed` bytes to follow: fewer than its content has.
    pub fn to_packed_bytes(&self, packed: u32) -> [u8; FRAME_HEADER_BYTES + PACKED_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES + PACKED_HEADER_BYTES];
        let piece = PieceHeader { length: packed, ..*self }.to_bytes();
        bytes[..piece.len()].copy_from_slice(&piece);
        let frame = header(PACKED, packed + PACKED_HEADER_BYTES as u32);
        bytes[..FRAME_HEADER_BYTES].copy_from_slice(&frame);
        bytes[piece.len()..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    fn read(bytes: &[u8; PACKED_HEADER_BYTES], length: Option<u32>) -> PieceHeader {
        let number = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        let mut hash = [0; 32];
        hash.copy_from_slice(&bytes[8..PIECE_HEADER_BYTES]);
        let length = length.unwrap_or_else(|| number(PIECE_HEADER_BYTES));
        PieceHeader { entry: number(0), piece: number(4), hash, length }
    }
}

/// A whole message frame with this body, which must not be empty or longer than [`MAX_MESSAGE_BYTES`].
pub fn message(body: &[u8]) -> Vec<u8> {
    debug_assert!(!body.is_empty() && body.len() <= MAX_MESSAGE_BYTES as usize);
    let mut frame = header(MESSAGE, body.len() as u32).to_vec();
    frame.extend_from_slice(body);
    frame
}

/// A whole record frame with this body, which must not be empty or longer than [`MAX_RECORD_BYTES`].
pub fn record(body: &[u8]) -> Vec<u8> {
    debug_assert!(!body.is_empty() && body.len() <= MAX_RECORD_BYTES as usize);
    let mut frame = header(RECORD, body.len() as u32).to_vec();
    frame.extend_from_slice(body);
    frame
}

fn header(kind: u8, length: u32) -> [u8; FRAME_HEADER_BYTES] {
    let [a, b, c, d] = length.to_be_bytes();
    [kind, a, b, c, d]
}

/// Splits a stream of bytes into [`FramePart`]s, independent of how the stream is divided into reads.
#[derive(Debug)]
pub struct FrameDecoder {
    state: DecoderState,
}

#[derive(Debug)]
enum DecoderState {
    Header {
        have: [u8; FRAME_HEADER_BYTES],
        n: usize,
    },
    PieceHeader {
        /// An unpacked piece uses only the first part of it.
        have: [u8; PACKED_HEADER_BYTES],
        n: usize,
        length: u32,
        packed: bool,
    },
    Content {
        left: u32,
    },
    Body {
        kind: u8,
        body: Vec<u8>,
        left: u32,
    },
    /// After an error, no later bytes can be trusted.
    Broken(FrameError),
}

impl Default for FrameDecoder {
    fn default() -> FrameDecoder {
        FrameDecoder { state: DecoderState::AT_HEADER }
    }
}

impl DecoderState {
    const AT_HEADER: DecoderState = DecoderState::Header { have: [0; FRAME_HEADER_BYTES], n: 0 };

    /// The length of the header of a piece, packed or not.
    fn piece_header(packed: bool) -> usize {
        if packed { PACKED_HEADER_BYTES } else { PIECE_HEADER_BYTES }
    }

    /// The part that begins after a piece's header, with `length` bytes to follow.
    fn after_piece_header(
        have: &[u8; PACKED_HEADER_BYTES],
        length: u32,
        packed: bool,
    ) -> Result<FramePart<'static>, FrameError> {
        if !packed {
            return Ok(FramePart::Piece(PieceHeader::read(have, Some(length)), length));
        }
        let header = PieceHeader::read(have, None);
        if length >= header.length || u64::from(header.length) > PIECE_BYTES {
            return Err(FrameError::Packed { packed: length, length: header.length });
        }
        Ok(FramePart::Piece(header, length))
    }

    fn after_header(have: [u8; FRAME_HEADER_BYTES]) -> Result<DecoderState, FrameError> {
        let [kind, a, b, c, d] = have;
        let length = u32::from_be_bytes([a, b, c, d]);
        let (min, limit) = match kind {
            PIECE => (PIECE_HEADER_BYTES as u32 + 1, MAX_PIECE_FRAME_BYTES),
            MESSAGE => (1, MAX_MESSAGE_BYTES),
            RECORD => (1, MAX_RECORD_BYTES),
            PACKED => (PACKED_HEADER_BYTES as u32 + 1, MAX_PIECE_FRAME_BYTES),
            _ => return Err(FrameError::Kind(kind)),
        };
        match length {
            _ if length < min => Err(FrameError::Empty),
            _ if length > limit => Err(FrameError::TooLong { length, limit }),
            _ if kind == PIECE || kind == PACKED => {
                let (packed, have) = (kind == PACKED, [0; PACKED_HEADER_BYTES]);
                let length = length - DecoderState::piece_header(packed) as u32;
                Ok(DecoderState::PieceHeader { have, n: 0, length, packed })
            }
            _ => Ok(DecoderState::Body { kind, body: Vec::new(), left: length }),
        }
    }
}

impl FrameDecoder {
    /// Whether all frames that have begun are complete.
    pub fn is_between_frames(&self) -> bool {
        matches!(self.state, DecoderState::Header { n: 0, .. })
    }

    /// Number of bytes of the current piece that have not arrived yet.
    pub fn content_left(&self) -> usize {
        match self.state {
            DecoderState::Content { left } => left as usize,
            _ => 0,
        }
    }

    /// Skips content of the current piece that was read without this decoder, at most [`FrameDecoder::content_left`]
    /// bytes.
    pub fn pass_content(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.content_left());
        if let DecoderState::Content { left } = &mut self.state {
            *left = left.saturating_sub(bytes as u32);
            if *left == 0 {
                self.state = DecoderState::AT_HEADER;
            }
        }
    }

    /// Removes the next part from the front of `input`; returns `None` when `input` is used up. After an error every
    /// call returns that error.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<FramePart<'a>>, FrameError> {
        while !input.is_empty() {
            match &mut self.state {
                DecoderState::Header { have, n } => {
                    let taken = take(input, FRAME_HEADER_BYTES - *n);
                    have[*n..*n + taken.len()].copy_from_slice(taken);
                    *n += taken.len();
                    if *n == FRAME_HEADER_BYTES {
                        self.state =
                            DecoderState::after_header(*have).unwrap_or_else(DecoderState::Broken);
                    }
                }
                DecoderState::PieceHeader { have, n, length, packed } => {
                    let whole = DecoderState::piece_header(*packed);
                    let taken = take(input, whole - *n);
                    have[*n..*n + taken.len()].copy_from_slice(taken);
                    *n += taken.len();
                    if *n == whole {
                        let (part, left) =
                            (DecoderState::after_piece_header(have, *length, *packed), *length);
                        self.state = match part {
                            Ok(_) => DecoderState::Content { left },
                            Err(error) => DecoderState::Broken(error),
                        };
                        return part.map(Some);
                    }
                }
                DecoderState::Content { left } => {
                    let taken = take(input, *left as usize);
                    *left -= taken.len() as u32;
                    if *left == 0 {
                        self.state = DecoderState::AT_HEADER;
                    }
                    return Ok(Some(FramePart::Content(taken)));
                }
                DecoderState::Body { kind, body, left } => {
                    let taken = take(input, *left as usize);
                    body.extend_from_slice(taken);
                    *left -= taken.len() as u32;
                    if *left == 0 {
                        let (kind, body) = (*kind, std::mem::take(body));
                        self.state = DecoderState::AT_HEADER;
                        return Ok(Some(match kind {
                            MESSAGE => FramePart::Message(body),
                            _ => FramePart::Record(body),
                        }));
                    }
                }
                DecoderState::Broken(error) => return Err(*error),
            }
        }
        match self.state {
            DecoderState::Broken(error) => Err(error),
            _ => Ok(None),
        }
    }
}

fn take<'a>(input: &mut &'a [u8], max: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(max.min(input.len()));
    *input = rest;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone, PartialEq)]
    enum Frame {
        Piece(PieceHeader, Vec<u8>),
        Packed(PieceHeader, Vec<u8>),
        Message(Vec<u8>),
        Record(Vec<u8>),
    }

    fn frame() -> impl Strategy<Value = Frame> {
        let body = || proptest::collection::vec(any::<u8>(), 1..300);
        prop_oneof![
            (body(), any::<(u32, u32)>()).prop_map(|(content, (entry, piece))| {
                let length = content.len() as u32;
                Frame::Piece(PieceHeader { entry, piece, hash: [7; 32], length }, content)
            }),
            (body(), 1..1000u32).prop_map(|(packed, more)| {
                let length = packed.len() as u32 + more;
                Frame::Packed(PieceHeader { entry: 1, piece: 2, hash: [7; 32], length }, packed)
            }),
            body().prop_map(Frame::Message),
            body().prop_map(Frame::Record)
        ]
    }

    /// The decoded frames, with each piece's parts joined.
    fn decode(stream: &[u8], cuts: &[usize]) -> Result<Vec<Frame>, FrameError> {
        let (mut decoder, mut frames, mut rest) = (FrameDecoder::default(), Vec::new(), stream);
        let mut cuts = cuts.iter().cycle();
        while !rest.is_empty() {
            let mut input = take(&mut rest, *cuts.next().unwrap());
            while let Some(part) = decoder.next(&mut input)? {
                match (part, frames.last_mut()) {
                    (FramePart::Piece(header, length), _) if length == header.length => {
                        frames.push(Frame::Piece(header, vec![]));
                    }
                    (FramePart::Piece(header, _), _) => frames.push(Frame::Packed(header, vec![])),
                    (FramePart::Content(c), Some(Frame::Piece(_, all) | Frame::Packed(_, all))) => {
                        all.extend(c)
                    }
                    (FramePart::Content(_), _) => panic!("content without a piece"),
                    (FramePart::Message(m), _) => frames.push(Frame::Message(m)),
                    (FramePart::Record(r), _) => frames.push(Frame::Record(r)),
                }
            }
        }
        Ok(frames)
    }

    proptest! {
        #[test]
        fn content_may_bypass_the_decoder(
            content in proptest::collection::vec(any::<u8>(), 1..300),
            passed in 0usize..300,
        ) {
            let passed = passed.min(content.len());
            let length = content.len() as u32;
            let header = PieceHeader { entry: 1, piece: 2, hash: [7; 32], length };
            let mut decoder = FrameDecoder::default();
            prop_assert_eq!(decoder.content_left(), 0);
            let bytes = header.to_bytes();
            let part = decoder.next(&mut &bytes[..]).unwrap();
            prop_assert_eq!(part, Some(FramePart::Piece(header, length)));
            prop_assert_eq!(decoder.content_left(), content.len());
            decoder.pass_content(passed);
            prop_assert_eq!(decoder.content_left(), content.len() - passed);
            let stream = [&content[passed..], &message(b"{}")].concat();
            let mut input = &stream[..];
            if passed < content.len() {
                let part = decoder.next(&mut input).unwrap();
                prop_assert_eq!(part, Some(FramePart::Content(&content[passed..])));
            }
            prop_assert!(decoder.is_between_frames());
            let part = decoder.next(&mut input).unwrap();
            prop_assert_eq!(part, Some(FramePart::Message(b"{}".to_vec())));
        }

        #[test]
        fn frames_survive_any_fragmentation(
            frames in proptest::collection::vec(frame(), 0..20),
            cuts in proptest::collection::vec(1usize..700, 1..20),
        ) {
            let mut stream = Vec::new();
            for frame in &frames {
                match frame {
                    Frame::Piece(header, content) => {
                        stream.extend(header.to_bytes());
                        stream.extend(content);
                    }
                    Frame::Packed(header, packed) => {
                        stream.extend(header.to_packed_bytes(packed.len() as u32));
                        stream.extend(packed);
                    }
                    Frame::Message(m) => stream.extend(message(m)),
                    Frame::Record(r) => stream.extend(record(r)),
                }
            }
            prop_assert_eq!(decode(&stream, &cuts).unwrap(), frames);
        }

        #[test]
        fn garbage_causes_no_panic(
            stream in proptest::collection::vec(any::<u8>(), 0..2000),
            cuts in proptest::collection::vec(1usize..50, 1..10),
        ) {
            let _ = decode(&stream, &cuts);
        }
    }

    #[test]
    fn invalid_lengths_and_kinds_are_rejected_at_the_header() {
        let limits = [
            (PIECE, MAX_PIECE_FRAME_BYTES),
            (MESSAGE, MAX_MESSAGE_BYTES),
            (RECORD, MAX_RECORD_BYTES),
        ];
        for (kind, limit) in limits {
            assert!(decode(&header(kind, limit), &[9]).is_ok());
            assert_eq!(
                decode(&header(kind, limit + 1), &[9]).unwrap_err(),
                FrameError::TooLong { length: limit + 1, limit }
            );
            assert_eq!(decode(&header(kind, 0), &[9]).unwrap_err(), FrameError::Empty);
        }
        let no_content = header(PIECE, PIECE_HEADER_BYTES as u32);
        assert_eq!(decode(&no_content, &[9]).unwrap_err(), FrameError::Empty);
        assert_eq!(decode(&header(4, 1), &[9]).unwrap_err(), FrameError::Kind(4));
    }

    #[test]
    fn a_packed_piece_must_shrink_and_unpack_to_at_most_one_piece() {
        let frame = |packed: u32, length: u32| {
            let header = PieceHeader { entry: 0, piece: 0, hash: [0; 32], length };
            let stream = header.to_packed_bytes(packed);
            decode(&stream, &[9]).map(|frames| frames.len())
        };
        let max = PIECE_BYTES as u32;
        assert_eq!(frame(1, 2), Ok(1));
        assert_eq!(frame(1, max), Ok(1));
        for (packed, length) in [(1, 0), (1, 1), (2, 1), (1, max + 1), (1, u32::MAX)] {
            assert_eq!(frame(packed, length), Err(FrameError::Packed { packed, length }));
        }
    }

    #[test]
    fn an_error_is_final() {
        let mut decoder = FrameDecoder::default();
        let bad = header(9, 1);
        assert_eq!(decoder.next(&mut &bad[..]), Err(FrameError::Kind(9)));
        let good = message(b"x");
        assert_eq!(decoder.next(&mut &good[..]), Err(FrameError::Kind(9)));
    }
}
