use sweetspot_linux::clock;
use sweetspot_protocol::frame::FrameDecoder;
use sweetspot_protocol::{Accept, Hello, Message, ProtocolError, SenderOrder, Session, VERSION};
use sweetspot_units::{Bytes, Duration};

use super::channel::{Channel, Incoming, SOCKET_READ_BYTES};
use super::sender::SendOptions;
use crate::TransferError;

/// The receiver takes no longer to answer a hello, reserving the disk included.
const HELLO_ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// The receiver's words, in order.
pub(crate) struct ControlStream<'a> {
    channel: &'a Channel,
    order: SenderOrder,
    decoder: FrameDecoder,
    raw: Vec<u8>,
    plain: Vec<u8>,
    /// How much of `plain` was taken in.
    used: usize,
}

impl<'a> ControlStream<'a> {
    pub fn new(channel: &'a Channel) -> ControlStream<'a> {
        ControlStream {
            channel,
            order: SenderOrder::default(),
            decoder: FrameDecoder::default(),
            raw: vec![0; SOCKET_READ_BYTES],
            plain: Vec::new(),
            used: 0,
        }
    }

    /// Says hello.
    pub fn hello(
        &self,
        session: &Session,
        name: &str,
        size: Bytes,
        options: &SendOptions,
    ) -> Result<(), TransferError> {
        self.channel.say(&Message::Hello(Hello {
            version: VERSION,
            proof: session.sender_proof(),
            name: name.to_owned(),
            size: size.get(),
            sizing: options.sizing.map(|s| s.to_string()),
            congestion: options.congestion.clone(),
            path: options.path.map(Into::into),
            probes: options.probes,
        }))
    }

    /// Hears whether we may come in.
    pub fn answer(&mut self, session: &Session) -> Result<Accept, TransferError> {
        let deadline = clock::now() + HELLO_ANSWER_TIMEOUT;
        let answer = self.next(|| deadline.since(clock::now()), || false);
        match answer.map_err(|error| match error {
            TransferError::Silent { .. } => self.channel.silent(HELLO_ANSWER_TIMEOUT),
            error => error,
        })? {
            Message::Accept(accept) if session.is_receiver_proof(&accept.proof) => Ok(accept),
            Message::Accept(_) => {
                Err(TransferError::CertificateMismatch(self.channel.peer().to_string()))
            }
            Message::Refuse { reason } | Message::Failed { reason } => {
                Err(TransferError::Refused(reason))
            }
            // The order lets nothing else through.
            _ => Err(self.channel.gone(Bytes::ZERO)),
        }
    }

    /// The next message, waiting for it at most as long as `patience` says before each read.
    /// `ended` tells whether the end was sent, so that a summary may come.
    pub fn next(
        &mut self,
        patience: impl Fn() -> Duration,
        ended: impl Fn() -> bool,
    ) -> Result<Message, TransferError> {
        loop {
            let mut input = &self.plain[self.used..];
            let before = input.len();
            let piece = self.decoder.next(&mut input).map_err(ProtocolError::from)?;
            self.used += before - input.len();
            if let Some(piece) = piece {
                if ended() {
                    self.order.end();
                }
                return Ok(self.order.handle(piece)?);
            }
            self.plain.clear();
            self.used = 0;
            match self.channel.read_within(&mut self.raw, &mut self.plain, patience())? {
                Incoming::Bytes(_) => {}
                Incoming::Closed => return Err(self.channel.gone(Bytes::ZERO)),
            }
        }
    }
}
