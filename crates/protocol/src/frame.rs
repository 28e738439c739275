//! Frames: one byte for the kind, four bytes for the length (big-endian), then that many bytes.
//!
//! Content (kind 0) is passed on piece by piece as it arrives. Messages (kind 1) are collected first. Both
//! have a maximum length, so that a hostile peer cannot make this end allocate memory.

use thiserror::Error;

/// The longest content frame that is accepted, bytes.
pub const MAX_CONTENT_BYTES: u32 = 1 << 20;
/// The longest message that is accepted, bytes.
pub const MAX_MESSAGE_BYTES: u32 = 16 << 10;
/// The length of a frame's header, bytes.
pub const FRAME_HEADER_BYTES: usize = 5;

const CONTENT: u8 = 0;
const MESSAGE: u8 = 1;

/// Why a frame is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The kind is unknown.
    #[error("a frame of unknown kind {0}")]
    Kind(u8),
    /// The length exceeds the maximum of its kind.
    #[error("a frame of {length} bytes, where {limit} is the most")]
    TooLong {
        /// The length in the header, bytes.
        length: u32,
        /// The maximum of this kind, bytes.
        limit: u32,
    },
    /// The frame is empty. It carries nothing and could be sent for ever.
    #[error("an empty frame")]
    Empty,
}

/// A part of the stream, cut out of its frames.
#[derive(Debug, PartialEq, Eq)]
pub enum FramePart<'a> {
    /// The next bytes of the content.
    Content(&'a [u8]),
    /// The body of a whole message.
    Message(Vec<u8>),
}

/// The header of a content frame with `length` bytes to follow.
pub fn content_header(length: u32) -> [u8; FRAME_HEADER_BYTES] {
    header(CONTENT, length)
}

/// A whole message frame with this body, which must not be empty or longer than [`MAX_MESSAGE_BYTES`].
pub fn message(body: &[u8]) -> Vec<u8> {
    debug_assert!(!body.is_empty() && body.len() <= MAX_MESSAGE_BYTES as usize);
    let mut frame = header(MESSAGE, body.len() as u32).to_vec();
    frame.extend_from_slice(body);
    frame
}

fn header(kind: u8, length: u32) -> [u8; FRAME_HEADER_BYTES] {
    let [a, b, c, d] = length.to_be_bytes();
    [kind, a, b, c, d]
}

/// Cuts a stream of bytes into [`FramePart`]s, however the stream is divided into reads.
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
    Content {
        left: u32,
    },
    Message {
        body: Vec<u8>,
        left: u32,
    },
    /// After an error nothing that follows can be trusted.
    Broken(FrameError),
}

impl Default for FrameDecoder {
    fn default() -> FrameDecoder {
        FrameDecoder { state: DecoderState::AT_HEADER }
    }
}

impl DecoderState {
    const AT_HEADER: DecoderState = DecoderState::Header { have: [0; FRAME_HEADER_BYTES], n: 0 };

    fn after_header(have: [u8; FRAME_HEADER_BYTES]) -> Result<DecoderState, FrameError> {
        let [kind, a, b, c, d] = have;
        let length = u32::from_be_bytes([a, b, c, d]);
        let limit = match kind {
            CONTENT => MAX_CONTENT_BYTES,
            MESSAGE => MAX_MESSAGE_BYTES,
            _ => return Err(FrameError::Kind(kind)),
        };
        match length {
            0 => Err(FrameError::Empty),
            _ if length > limit => Err(FrameError::TooLong { length, limit }),
            _ if kind == CONTENT => Ok(DecoderState::Content { left: length }),
            _ => Ok(DecoderState::Message { body: Vec::new(), left: length }),
        }
    }
}

impl FrameDecoder {
    /// Takes the next part off the front of `input`; `None` once `input` is used up. After an error every call
    /// returns that error.
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
                DecoderState::Content { left } => {
                    let taken = take(input, *left as usize);
                    *left -= taken.len() as u32;
                    if *left == 0 {
                        self.state = DecoderState::AT_HEADER;
                    }
                    return Ok(Some(FramePart::Content(taken)));
                }
                DecoderState::Message { body, left } => {
                    let taken = take(input, *left as usize);
                    body.extend_from_slice(taken);
                    *left -= taken.len() as u32;
                    if *left == 0 {
                        let body = std::mem::take(body);
                        self.state = DecoderState::AT_HEADER;
                        return Ok(Some(FramePart::Message(body)));
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

fn take<'a>(input: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(most.min(input.len()));
    *input = rest;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Frame {
        Content(Vec<u8>),
        Message(Vec<u8>),
    }

    fn frame() -> impl Strategy<Value = Frame> {
        let body = || proptest::collection::vec(any::<u8>(), 1..300);
        prop_oneof![body().prop_map(Frame::Content), body().prop_map(Frame::Message)]
    }

    /// What arrives, with neighbouring pieces of content joined.
    fn decode(stream: &[u8], cuts: &[usize]) -> Result<Vec<Frame>, FrameError> {
        let (mut decoder, mut frames, mut rest) = (FrameDecoder::default(), Vec::new(), stream);
        let mut cuts = cuts.iter().cycle();
        while !rest.is_empty() {
            let mut input = take(&mut rest, *cuts.next().unwrap());
            while let Some(piece) = decoder.next(&mut input)? {
                match (piece, frames.last_mut()) {
                    (FramePart::Content(c), Some(Frame::Content(all))) => all.extend(c),
                    (FramePart::Content(c), _) => frames.push(Frame::Content(c.to_vec())),
                    (FramePart::Message(m), _) => frames.push(Frame::Message(m)),
                }
            }
        }
        Ok(frames)
    }

    proptest! {
        #[test]
        fn frames_survive_any_cutting(
            frames in proptest::collection::vec(frame(), 0..20),
            cuts in proptest::collection::vec(1usize..700, 1..20),
        ) {
            let (mut stream, mut sent) = (Vec::new(), Vec::new());
            for frame in &frames {
                match frame {
                    Frame::Content(c) => {
                        stream.extend(content_header(c.len() as u32));
                        stream.extend(c);
                    }
                    Frame::Message(m) => stream.extend(message(m)),
                }
                match (frame, sent.last_mut()) {
                    (Frame::Content(c), Some(Frame::Content(all))) => all.extend(c),
                    (frame, _) => sent.push(frame.clone()),
                }
            }
            let got = decode(&stream, &cuts).unwrap();
            prop_assert_eq!(format!("{got:?}"), format!("{sent:?}"));
        }

        #[test]
        fn garbage_is_an_error_and_never_a_panic(
            stream in proptest::collection::vec(any::<u8>(), 0..2000),
            cuts in proptest::collection::vec(1usize..50, 1..10),
        ) {
            let _ = decode(&stream, &cuts);
        }
    }

    #[test]
    fn lengths_beyond_the_limit_are_refused_at_the_header() {
        for (kind, limit) in [(CONTENT, MAX_CONTENT_BYTES), (MESSAGE, MAX_MESSAGE_BYTES)] {
            assert!(decode(&header(kind, limit), &[9]).is_ok());
            assert_eq!(
                decode(&header(kind, limit + 1), &[9]).unwrap_err(),
                FrameError::TooLong { length: limit + 1, limit }
            );
            assert_eq!(decode(&header(kind, 0), &[9]).unwrap_err(), FrameError::Empty);
        }
        assert_eq!(decode(&header(2, 1), &[9]).unwrap_err(), FrameError::Kind(2));
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
