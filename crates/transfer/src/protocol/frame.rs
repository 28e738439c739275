//! Frames: one byte of kind, four bytes of length (big-endian), then that many bytes.
//!
//! Content (kind 0) is handed on piece by piece as it arrives, without waiting for the frame's
//! end; messages (kind 1) are collected first. Both have a limit, so that a hostile length cannot
//! make the other end allocate.

use thiserror::Error;

/// The longest content frame that is taken.
pub const LONGEST_CONTENT: u32 = 1 << 20;
/// The longest message that is taken.
pub const LONGEST_MESSAGE: u32 = 16 << 10;
/// Bytes before a frame's body.
pub const HEADER: usize = 5;

const CONTENT: u8 = 0;
const MESSAGE: u8 = 1;

/// What is wrong with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// A kind that does not exist.
    #[error("a frame of unknown kind {0}")]
    Kind(u8),
    /// A length beyond the kind's limit.
    #[error("a frame of {length} bytes, where {limit} is the most")]
    TooLong {
        /// The length given.
        length: u32,
        /// The most for this kind.
        limit: u32,
    },
    /// An empty frame, which says nothing and could be sent for ever.
    #[error("an empty frame")]
    Empty,
}

/// Part of what arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum FramePart<'a> {
    /// The next bytes of the content.
    Content(&'a [u8]),
    /// A whole message.
    Message(Vec<u8>),
}

/// The header of a content frame with `length` bytes to follow.
pub fn content_header(length: u32) -> [u8; HEADER] {
    header(CONTENT, length)
}

/// A whole message frame.
pub fn message(body: &[u8]) -> Vec<u8> {
    debug_assert!(!body.is_empty() && body.len() <= LONGEST_MESSAGE as usize);
    let mut frame = header(MESSAGE, body.len() as u32).to_vec();
    frame.extend_from_slice(body);
    frame
}

fn header(kind: u8, length: u32) -> [u8; HEADER] {
    let [a, b, c, d] = length.to_be_bytes();
    [kind, a, b, c, d]
}

/// Cuts a stream of bytes into [`FramePart`]s, whatever the reads it comes in.
#[derive(Debug)]
pub struct Decoder {
    state: State,
}

#[derive(Debug)]
enum State {
    Header {
        have: [u8; HEADER],
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

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder { state: State::AT_HEADER }
    }
}

impl State {
    const AT_HEADER: State = State::Header { have: [0; HEADER], n: 0 };

    fn after_header(have: [u8; HEADER]) -> Result<State, FrameError> {
        let [kind, a, b, c, d] = have;
        let length = u32::from_be_bytes([a, b, c, d]);
        let limit = match kind {
            CONTENT => LONGEST_CONTENT,
            MESSAGE => LONGEST_MESSAGE,
            _ => return Err(FrameError::Kind(kind)),
        };
        match length {
            0 => Err(FrameError::Empty),
            _ if length > limit => Err(FrameError::TooLong { length, limit }),
            _ if kind == CONTENT => Ok(State::Content { left: length }),
            _ => Ok(State::Message { body: Vec::new(), left: length }),
        }
    }
}

impl Decoder {
    /// Takes the next piece off the front of `input`; `None` once `input` is used up.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<FramePart<'a>>, FrameError> {
        while !input.is_empty() {
            match &mut self.state {
                State::Header { have, n } => {
                    let taken = take(input, HEADER - *n);
                    have[*n..*n + taken.len()].copy_from_slice(taken);
                    *n += taken.len();
                    if *n == HEADER {
                        self.state = State::after_header(*have).unwrap_or_else(State::Broken);
                    }
                }
                State::Content { left } => {
                    let taken = take(input, *left as usize);
                    *left -= taken.len() as u32;
                    if *left == 0 {
                        self.state = State::AT_HEADER;
                    }
                    return Ok(Some(FramePart::Content(taken)));
                }
                State::Message { body, left } => {
                    let taken = take(input, *left as usize);
                    body.extend_from_slice(taken);
                    *left -= taken.len() as u32;
                    if *left == 0 {
                        let body = std::mem::take(body);
                        self.state = State::AT_HEADER;
                        return Ok(Some(FramePart::Message(body)));
                    }
                }
                State::Broken(error) => return Err(*error),
            }
        }
        match self.state {
            State::Broken(error) => Err(error),
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
        let (mut decoder, mut frames, mut rest) = (Decoder::default(), Vec::new(), stream);
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
        for (kind, limit) in [(CONTENT, LONGEST_CONTENT), (MESSAGE, LONGEST_MESSAGE)] {
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
        let mut decoder = Decoder::default();
        let bad = header(9, 1);
        assert_eq!(decoder.next(&mut &bad[..]), Err(FrameError::Kind(9)));
        let good = message(b"x");
        assert_eq!(decoder.next(&mut &good[..]), Err(FrameError::Kind(9)));
    }
}
