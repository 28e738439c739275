//! The frames that arrive on a connection, decrypted, and how long their sender may take.

use std::ops::Range;
use std::sync::Arc;

use sweetspot_linux::clock;
use sweetspot_protocol::frame::{FrameDecoder, FramePart};
use sweetspot_protocol::{Message, ProtocolError};
use sweetspot_units::{Bytes, Duration, Time};

use crate::TransferError;
use crate::limits::{FRAME_GRACE, MIN_FRAME_RATE};
use crate::wire::channel::{Channel, SOCKET_READ_BYTES};

/// The frames that arrive on a connection.
pub(crate) struct FrameReader {
    channel: Arc<Channel>,
    decoder: FrameDecoder,
    raw: Vec<u8>,
    /// The part of `raw` that was read and is still encrypted.
    encrypted: Range<usize>,
    /// A record's plain text, as a rule.
    plain: Vec<u8>,
    /// The number of bytes of `plain` already consumed.
    used: usize,
    frame: FrameClock,
}

/// How long a frame that is arriving has kept its reader waiting, and the bytes that came meanwhile.
#[derive(Debug, Default)]
struct FrameClock {
    waited: Duration,
    arrived: u64,
}

impl FrameClock {
    /// The reader waited for `waited`, and `bytes` of the frame came.
    fn note(&mut self, waited: Duration, bytes: u64) {
        self.waited += waited;
        self.arrived += bytes;
    }

    /// Whether the frame arrives more slowly than the slowest path would bring it.
    fn is_too_slow(&self) -> bool {
        let paid_for = Duration::from_secs(self.arrived / MIN_FRAME_RATE);
        self.waited > FRAME_GRACE + paid_for
    }
}

impl FrameReader {
    pub fn new(channel: Arc<Channel>) -> FrameReader {
        let plain = channel.take_early();
        FrameReader {
            channel,
            decoder: FrameDecoder::default(),
            raw: vec![0; SOCKET_READ_BYTES],
            encrypted: 0..0,
            plain,
            used: 0,
            frame: FrameClock::default(),
        }
    }

    /// The next part of what was read; `None` if more has to be read.
    pub fn next_part(&mut self) -> Result<Option<FramePart<'_>>, TransferError> {
        if self.used == self.plain.len() {
            self.decrypt()?;
        }
        let mut input = &self.plain[self.used..];
        let before = input.len();
        let part = self.decoder.next(&mut input).map_err(ProtocolError::from)?;
        self.used += before - input.len();
        if part.is_some() && self.decoder.is_between_frames() {
            self.frame = FrameClock::default();
        }
        Ok(part)
    }

    /// Reads more from the connection, when [`FrameReader::next_part`] finds nothing. Returns how much that was; `None`
    /// if the peer closed the connection.
    pub fn read(&mut self, deadline: Option<Time>) -> Result<Option<Bytes>, TransferError> {
        if !self.encrypted.is_empty() {
            // A frame's header lay across two records.
            return Ok(Some(Bytes::ZERO));
        }
        if self.frame.is_too_slow() {
            return Err(TransferError::TooSlow(self.channel.peer().to_string()));
        }
        // Between frames a peer may rest for as long as it says that it is there.
        let rests = self.frame.arrived == 0 && self.decoder.is_between_frames();
        let start = clock::now();
        let Some(n) = self.channel.read(&mut self.raw, deadline)? else { return Ok(None) };
        self.encrypted = 0..n;
        let waited = if rests { Duration::ZERO } else { clock::now().since(start) };
        self.frame.note(waited, n as u64);
        Ok(Some(Bytes::new(n as u64)))
    }

    /// Decrypts the next of what was read, when the plain text is used up.
    fn decrypt(&mut self) -> Result<(), TransferError> {
        self.plain.clear();
        self.used = 0;
        let mut rest = &self.raw[self.encrypted.clone()];
        self.channel.decrypt(&mut rest, &mut self.plain)?;
        self.encrypted.start = self.encrypted.end - rest.len();
        Ok(())
    }

    /// Waits until `take` returns a value for one of the arriving parts, or for the deadline. Parts without a value are
    /// skipped.
    pub fn wait_for<T>(
        &mut self,
        deadline: Time,
        mut take: impl FnMut(FramePart<'_>) -> Result<Option<T>, TransferError>,
    ) -> Result<T, TransferError> {
        loop {
            while let Some(part) = self.next_part()? {
                if let Some(found) = take(part)? {
                    return Ok(found);
                }
            }
            // However slowly the peer sends: each byte would put off a limit that counts silence alone.
            if clock::now() >= deadline {
                return Err(TransferError::TooSlow(self.channel.peer().to_string()));
            }
            if self.read(Some(deadline))?.is_none() {
                return Err(self.channel.gone(Bytes::ZERO));
            }
        }
    }

    /// Waits for one message that opens the connection.
    pub fn opening_message(&mut self, deadline: Time) -> Result<Message, TransferError> {
        self.wait_for(deadline, |part| match part {
            FramePart::Message(body) => {
                Ok(Some(Message::read(&body).map_err(ProtocolError::from)?))
            }
            _ => {
                let (what, when) = ("content", "before a message");
                Err(ProtocolError::OutOfOrder { what, when }.into())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use sweetspot_protocol::frame::message;

    use super::*;
    use crate::wire::identity::{AskFor, Identity};

    #[test]
    fn a_frame_that_trickles_is_too_slow_and_one_of_a_slow_path_is_not() {
        // A byte every 0.4 s pays for 1/32 s: more than 60 s are waited after 60 / (0.4 - 1/32) = 163 bytes.
        let mut frame = FrameClock::default();
        let trickle = (1..).find(|_| {
            frame.note(Duration::from_millis(400), 1);
            frame.is_too_slow()
        });
        assert_eq!(trickle, Some(163));
        // 64 connections share 64 kbit/s: each brings 125 bytes in a second.
        let mut frame = FrameClock::default();
        for _ in 0..10_000 {
            frame.note(Duration::from_secs(1), 125);
            assert!(!frame.is_too_slow());
        }
        // An outage that the path survives.
        let mut frame = FrameClock::default();
        frame.note(crate::limits::PEER_TIMEOUT, 1);
        assert!(!frame.is_too_slow());
    }

    #[test]
    fn a_deadline_holds_although_the_peer_sends() {
        let identity = Identity::fresh().unwrap();
        let (expected, config) = (identity.public_key().0, identity.listening(AskFor::Nothing));
        let config = config.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let soon = clock::now() + FRAME_GRACE;
        let (near, far) = thread::scope(|scope| {
            let far = scope.spawn(|| {
                let socket = TcpStream::connect(address).unwrap();
                Channel::connect(socket, Some(expected), None, soon).unwrap()
            });
            let (socket, _) = listener.accept().unwrap();
            (Channel::accept(socket, &config, soon).unwrap(), far.join().unwrap())
        });
        // There is always something to read, and never a whole message.
        far.write(&[&message(b"{}")[..4]]).unwrap();
        far.sever();
        let error = FrameReader::new(Arc::new(near)).opening_message(clock::now()).unwrap_err();
        assert!(matches!(error, TransferError::TooSlow(_)), "{error}");
    }
}
