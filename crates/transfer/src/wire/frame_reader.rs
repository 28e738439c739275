//! Reads and decrypts the frames of a connection, with a time limit for their sender.

use std::ops::Range;
use std::sync::Arc;

use sweetspot_linux::clock;
use sweetspot_protocol::frame::{FrameDecoder, FramePart};
use sweetspot_protocol::{Message, ProtocolError};
use sweetspot_units::{Bytes, Duration, Time};

use crate::limits::{FRAME_GRACE, MIN_FRAME_RATE, PARTING_TIMEOUT};
use crate::wire::channel::{Channel, SOCKET_READ_BYTES};
use crate::{Result, TransferError};

pub(crate) struct FrameReader {
    channel: Arc<Channel>,
    decoder: FrameDecoder,
    raw: Vec<u8>,
    /// The part of `raw` that has been read but not decrypted.
    encrypted: Range<usize>,
    /// Decrypted data, usually of one record.
    plain: Vec<u8>,
    /// Number of bytes of `plain` already consumed.
    used: usize,
    frame: FrameClock,
}

/// How long the reader has waited for the present frame, and the number of bytes that arrived meanwhile.
#[derive(Debug, Default)]
struct FrameClock {
    waited: Duration,
    arrived: u64,
}

impl FrameClock {
    /// Counts `bytes` of the frame, which arrived after a wait of `waited`.
    fn note(&mut self, waited: Duration, bytes: u64) {
        self.waited += waited;
        self.arrived += bytes;
    }

    /// Whether the frame arrives more slowly than on the slowest usable path.
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

    /// The next part of the data read so far; `None` if more must be read.
    pub fn next_part(&mut self) -> Result<Option<FramePart<'_>>> {
        if self.used == self.plain.len() {
            self.decrypt(&mut Vec::new(), 0)?;
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

    /// Reads more from the connection, after [`FrameReader::next_part`] returned `None`. Returns the number of bytes;
    /// `None` if the peer closed the connection.
    pub fn read(&mut self, deadline: Option<Time>) -> Result<Option<Bytes>> {
        if !self.encrypted.is_empty() {
            // A frame's header was split across two records.
            return Ok(Some(Bytes::ZERO));
        }
        if self.frame.is_too_slow() {
            return Err(TransferError::TooSlow(self.channel.peer().to_string()));
        }
        // Between frames a peer may be idle as long as its keepalives arrive.
        let idle = self.frame.arrived == 0 && self.decoder.is_between_frames();
        let start = clock::now();
        let Some(n) = self.channel.read(&mut self.raw, deadline)? else { return Ok(None) };
        self.encrypted = 0..n;
        let waited = if idle { Duration::ZERO } else { clock::now().since(start) };
        self.frame.note(waited, n as u64);
        Ok(Some(Bytes::new(n as u64)))
    }

    /// Appends the available content of the present piece to `piece`, decrypted in place. Returns the number of bytes.
    pub fn fill(&mut self, piece: &mut Vec<u8>) -> Result<usize> {
        let (before, left) = (piece.len(), self.decoder.content_left());
        let available = &self.plain[self.used..];
        let available = &available[..left.min(available.len())];
        piece.extend_from_slice(available);
        self.used += available.len();
        while piece.len() - before < left && !self.encrypted.is_empty() {
            self.decrypt(piece, left - (piece.len() - before))?;
        }
        let received = piece.len() - before;
        self.decoder.pass_content(received);
        if received > 0 && self.decoder.is_between_frames() {
            self.frame = FrameClock::default();
        }
        Ok(received)
    }

    /// Decrypts the next record once `plain` is consumed: at most `max` bytes into `piece`, and the rest into `plain`.
    fn decrypt(&mut self, piece: &mut Vec<u8>, max: usize) -> Result<()> {
        self.plain.clear();
        self.used = 0;
        let mut rest = &self.raw[self.encrypted.clone()];
        self.channel.decrypt(&mut rest, (piece, max), &mut self.plain)?;
        self.encrypted.start = self.encrypted.end - rest.len();
        Ok(())
    }

    /// Waits until `take` returns a value for an arriving part, or until the deadline. Parts without a value are skipped.
    pub fn wait_for<T>(
        &mut self,
        deadline: Time,
        mut take: impl FnMut(FramePart<'_>) -> Result<Option<T>>,
    ) -> Result<T> {
        loop {
            while let Some(part) = self.next_part()? {
                if let Some(found) = take(part)? {
                    return Ok(found);
                }
            }
            // A limit on silence alone would be postponed by every byte of a slow peer.
            if clock::now() >= deadline {
                return Err(TransferError::TooSlow(self.channel.peer().to_string()));
            }
            if self.read(Some(deadline))?.is_none() {
                return Err(self.channel.disconnected(Bytes::ZERO));
            }
        }
    }

    /// The reason why the transfer broke: the peer's own, if it sent one before it disconnected, or `error`. A write may
    /// notice a reset before that reason is read.
    pub fn cause(&mut self, error: TransferError) -> TransferError {
        if !matches!(error, TransferError::PeerGone { .. }) {
            return error;
        }
        let failed = |part: FramePart<'_>| match part {
            FramePart::Message(body) => Ok(match Message::read(&body) {
                Ok(Message::Failed { reason }) => Some(TransferError::PeerFailed(reason)),
                Ok(Message::Refuse { reason }) => Some(TransferError::Refused(reason)),
                _ => None,
            }),
            _ => Ok(None),
        };
        self.wait_for(clock::now() + PARTING_TIMEOUT, failed).unwrap_or(error)
    }

    /// Waits for the one message that opens the connection.
    pub fn opening_message(&mut self, deadline: Time) -> Result<Message> {
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
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::thread;

    use sweetspot_protocol::frame::{FRAME_HEADER_BYTES, PIECE_HEADER_BYTES, PieceHeader, message};

    use super::*;
    use crate::wire::identity::{ClientAuth, Identity};

    /// Bytes before a piece's content.
    const HEADERS: usize = FRAME_HEADER_BYTES + PIECE_HEADER_BYTES;

    #[test]
    fn a_trickling_frame_is_too_slow_but_a_slow_path_is_tolerated() {
        // A byte every 0.4 s pays for 1/32 s. The grace of 60 s is therefore used up after 60 / (0.4 - 1/32) = 163 bytes.
        let mut frame = FrameClock::default();
        let trickle = (1..).find(|_| {
            frame.note(Duration::from_millis(400), 1);
            frame.is_too_slow()
        });
        assert_eq!(trickle, Some(163));
        // 64 connections share 64 kbit/s, so each carries 125 bytes per second.
        let mut frame = FrameClock::default();
        for _ in 0..10_000 {
            frame.note(Duration::from_secs(1), 125);
            assert!(!frame.is_too_slow());
        }
        // An outage that a connection survives.
        let mut frame = FrameClock::default();
        frame.note(crate::limits::PEER_TIMEOUT, 1);
        assert!(!frame.is_too_slow());
    }

    /// Both ends of a connection. `relay` carries the bytes to the near end.
    fn ends(relay: impl FnOnce(TcpStream, TcpStream) + Send + 'static) -> (FrameReader, Channel) {
        let identity = Identity::fresh().unwrap();
        let (expected, config) = (identity.public_key().0, identity.listening(ClientAuth::Nothing));
        let config = config.unwrap();
        let listeners = [(), ()].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [near_address, relay_address] =
            listeners.each_ref().map(|listener| listener.local_addr().unwrap());
        let soon = clock::now() + FRAME_GRACE;
        let [near_listener, relay_listener] = listeners;
        thread::spawn(move || {
            let (from, _) = relay_listener.accept().unwrap();
            let to = TcpStream::connect(near_address).unwrap();
            let (mut back, mut forth) = (to.try_clone().unwrap(), from.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut back, &mut forth));
            relay(from, to);
        });
        thread::scope(|scope| {
            let far = scope.spawn(|| {
                let socket = TcpStream::connect(relay_address).unwrap();
                Channel::connect(socket, Some(expected), None, soon).unwrap()
            });
            let (socket, _) = near_listener.accept().unwrap();
            let near = Channel::accept(socket, &config, soon).unwrap();
            (FrameReader::new(Arc::new(near)), far.join().unwrap())
        })
    }

    /// Relays everything, and flips one bit in each read of at least `damaged_from` bytes.
    fn relay(damaged_from: usize) -> impl FnOnce(TcpStream, TcpStream) + Send + 'static {
        move |mut from, mut to| {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut buffer) {
                if n >= damaged_from {
                    buffer[n / 2] ^= 1;
                }
                if to.write_all(&buffer[..n]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        }
    }

    /// Reads the content of the next piece into `buffer`.
    fn piece(frames: &mut FrameReader, buffer: &mut Vec<u8>) -> Result<u32> {
        let header = frames.wait_for(clock::now() + FRAME_GRACE, |part| match part {
            FramePart::Piece(header, _) => Ok(Some(header)),
            _ => Ok(None),
        })?;
        while buffer.len() < header.length as usize {
            if frames.fill(buffer)? == 0 && frames.read(None)?.is_none() {
                return Err(frames.channel.disconnected(Bytes::ZERO));
            }
        }
        Ok(header.entry)
    }

    /// The frame of a piece of `length` bytes, and its content: a byte value unique to the entry.
    fn frame(entry: u32, length: u32) -> (Vec<u8>, Vec<u8>) {
        let header = PieceHeader { entry, piece: 0, hash: [0; 32], length };
        let content = vec![entry as u8 + 1; length as usize];
        ([&header.to_bytes()[..], &content].concat(), content)
    }

    #[test]
    fn a_piece_contains_exactly_its_content() {
        // Around the lengths of a record (16384), of a read and of a write.
        let lengths = [1, 44, 16_339, 16_340, 16_384, 40_000, 1, 262_144, 7];
        let (mut frames, far) = ends(relay(usize::MAX));
        thread::scope(|scope| {
            scope.spawn(|| {
                for (entry, length) in (0..).zip(lengths) {
                    // In one write or in two, with a message between pieces.
                    let (bytes, _) = frame(entry, length);
                    let (first, rest) = bytes.split_at(bytes.len() / 2);
                    far.write(&[first, rest, &message(b"{}")]).unwrap();
                }
            });
            let mut buffer = Vec::new();
            for (entry, length) in (0..).zip(lengths) {
                buffer.clear();
                assert_eq!(piece(&mut frames, &mut buffer).unwrap(), entry);
                assert!(buffer == frame(entry, length).1, "piece {entry}");
            }
        });
    }

    #[test]
    fn no_byte_of_a_damaged_record_reaches_a_piece() {
        let (mut frames, far) = ends(relay(3000));
        // The first record is short and arrives undamaged.
        let (bytes, content) = frame(0, 20_000);
        far.write(&[&bytes[..1000]]).unwrap();
        let mut buffer = Vec::new();
        let header = frames.wait_for(clock::now() + FRAME_GRACE, |part| {
            Ok(Some(matches!(part, FramePart::Piece(..))))
        });
        assert!(header.unwrap());
        while buffer.len() < 1000 - HEADERS {
            if frames.fill(&mut buffer).unwrap() == 0 {
                frames.read(None).unwrap().unwrap();
            }
        }
        far.write(&[&bytes[1000..]]).unwrap();
        let error = loop {
            match frames.fill(&mut buffer) {
                Ok(_) => frames.read(None).unwrap().unwrap(),
                Err(error) => break error,
            };
        };
        assert!(matches!(error, TransferError::Tls { .. }), "{error}");
        assert_eq!(buffer, content[..1000 - HEADERS]);
    }

    #[test]
    fn a_deadline_applies_even_while_data_arrives() {
        let (mut frames, far) = ends(relay(usize::MAX));
        // Data is always available, but never a complete message.
        far.write(&[&message(b"{}")[..4]]).unwrap();
        far.sever();
        let error = frames.opening_message(clock::now()).unwrap_err();
        assert!(matches!(error, TransferError::TooSlow(_)), "{error}");
    }
}
