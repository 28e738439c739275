use sweetspot_linux::clock;
use sweetspot_linux::tcp::options;
use sweetspot_units::{Bytes, Duration};

use super::admission::Handshake;
use super::channel::{Channel, Incoming, READ_SIZE};
use super::receiver_control::ReceiverControl;
use super::sink::{Sink, Written};
use crate::TransferError;
use crate::protocol::frame::Decoder;
use crate::protocol::{Arrival, ReceiverOrder, SenderSummary};

/// The sender's closing words are waited for this long.
const CLOSING: Duration = Duration::from_secs(10);

/// The sender's stream: bytes in, content out.
pub(crate) struct Stream<'a> {
    channel: &'a Channel,
    order: ReceiverOrder,
    decoder: Decoder,
    raw: Vec<u8>,
    plain: Vec<u8>,
    content: Bytes,
}

impl<'a> Stream<'a> {
    /// The stream of an admitted sender over `channel`, from what followed its hello on.
    pub fn new(channel: &'a Channel, admitted: Handshake) -> Stream<'a> {
        Stream {
            channel,
            order: admitted.order,
            decoder: admitted.decoder,
            raw: vec![0; READ_SIZE],
            plain: admitted.rest,
            content: Bytes::ZERO,
        }
    }

    /// The hello was accepted.
    pub fn accept(&mut self) {
        self.order.accept();
    }

    /// Receives all content into `sink`; returns what was written, and the hash that the sender
    /// gave.
    pub fn receive(
        &mut self,
        receiver_control: &ReceiverControl<'_>,
        mut sink: Sink,
    ) -> Result<(Written, String), TransferError> {
        let sent = loop {
            if let Some(hash) = self.take_in(receiver_control, &mut sink)? {
                break hash;
            }
            let read = self.read()?;
            let failed = TransferError::system("SIOCINQ");
            let unread = options::unread(self.channel.socket()).map_err(failed)?;
            receiver_control.handle_data(read, unread)?;
        };
        receiver_control.finishing();
        Ok((sink.finish()?, sent))
    }

    /// Passes what was read on to the disk; returns the sender's hash at the end.
    fn take_in(
        &mut self,
        receiver_control: &ReceiverControl<'_>,
        sink: &mut Sink,
    ) -> Result<Option<String>, TransferError> {
        let plain = std::mem::take(&mut self.plain);
        let (mut input, mut block) = (&plain[..], sink.buffer());
        let mut end = None;
        while let Some(piece) = self
            .decoder
            .next(&mut input)
            .map_err(|e| TransferError::Protocol { error: e.into() })?
        {
            match self.order.handle(piece)? {
                Arrival::Content(bytes) => block.extend_from_slice(bytes),
                Arrival::End { hash } => end = Some(hash),
                Arrival::Failed(reason) => return Err(TransferError::PeerFailed(reason)),
                Arrival::Hello(_) | Arrival::SenderSummary(_) => {}
            }
        }
        if !block.is_empty() {
            let content = Bytes::new(block.len() as u64);
            self.content += content;
            receiver_control.handle_content(content);
            sink.write(block)?;
        }
        self.plain = plain;
        self.plain.clear();
        Ok(end)
    }

    fn read(&mut self) -> Result<Bytes, TransferError> {
        match self.channel.read(&mut self.raw, &mut self.plain)? {
            Incoming::Bytes(n) => Ok(n),
            Incoming::Closed => Err(self.channel.gone(self.content)),
        }
    }

    /// The sender's numbers, if it still gives them: the content is safe either way.
    pub fn closing(&mut self) -> Option<SenderSummary> {
        let deadline = clock::now() + CLOSING;
        loop {
            let left = deadline.since(clock::now());
            match self.channel.read_within(&mut self.raw, &mut self.plain, left) {
                Ok(Incoming::Bytes(_)) => {}
                _ => return None,
            }
            let mut input = &self.plain[..];
            if let Ok(Some(piece)) = self.decoder.next(&mut input) {
                return match self.order.handle(piece) {
                    Ok(Arrival::SenderSummary(closing)) => Some(closing),
                    _ => None,
                };
            }
            self.plain.clear();
        }
    }
}
